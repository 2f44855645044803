#!/usr/bin/env bash
# Runs the path train, predict, explore: the page and its pictures are there and whole; bad input (one line that names the
# culprit, exit code 2, nothing written). Exit code 77: there is no gnuplot.
# usage: check_explore.sh FOLDER_OF_PROGRAMS   whose train has SpecialOrthogonal_2, Diagonal_2 and Identity_2
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tests/program_checks.sh"
command -v gnuplot > /dev/null || { echo "check_explore: no gnuplot"; exit 77; }
enter_work_folder "$1"

# usage: check_page FOLDER PICTURE...: the page shows these pictures and no others; all are whole.
check_page() {
  local folder=$1 picture
  shift
  [ "$(tail -n 1 "$folder/index.html")" = '</html>' ] || fail "$folder/index.html is not whole"
  diff <(printf '%s.svg\n' "$@" | sort) <(sed -n 's/.*<img src="\([^"]*\)".*/\1/p' "$folder/index.html" | sort) \
    || fail "$folder/index.html shows other pictures"
  diff <(printf '%s.svg\n' "$@" | sort) <(cd "$folder" && ls ./*.svg | sed 's#^\./##' | sort) || fail "other files in $folder"
  for picture in "$@"; do
    head -n 5 "$folder/$picture.svg" | grep -q '<svg' || fail "$picture.svg does not begin with <svg"
    [ "$(grep -v '^$' "$folder/$picture.svg" | tail -n 1)" = '</svg>' ] || fail "$picture.svg does not end with </svg>"
    grep -q 'id="gnuplot_plot_1' "$folder/$picture.svg" || fail "nothing is plotted in $picture.svg"
    ! command -v xmllint > /dev/null || xmllint --noout "$folder/$picture.svg" || fail "$picture.svg is not well-formed"
  done
}

train=("$bin/train" --dataset karate --stalk-dim 2 --channels 4 --layers 2 --splits 0)
"${train[@]}" --epochs 20 --sheaf bsnn.npz --report history.json --history > /dev/null || fail "train"
"$bin/explore" --sheaf bsnn.npz --dataset karate --split 0 --report history.json --output bsnn > explore.txt \
  || fail "explore"
grep -qx '8 pictures: bsnn/index.html' explore.txt || fail "explore prints $(cat explore.txt)"
check_page bsnn classes uncertainty edges histograms spectrum layers rejection history
# Without validation nodes there is no validation loss.
"${train[@]}" --epochs 5 --make-splits 80/0/20 --report none.json --history > /dev/null || fail "train without validation nodes"
"$bin/explore" --sheaf bsnn.npz --report none.json --output none > none.txt 2>&1 || fail "explore: $(cat none.txt)"
check_page none classes uncertainty edges histograms spectrum layers rejection history
! grep -q 'validation loss' none/history.svg <(grep figcaption none/index.html) || fail "a loss of no nodes is shown"
for part in '34 nodes, 78 edges' 'Bayesian, special-orthogonal maps, stalk dimension 2' 'accuracy, test nodes of split 0' \
            'Mutual information'; do
  grep -rqF "$part" bsnn || fail "'$part' is not shown"
done
# Is the sheaf used: figures of the training, on the terminal and below the facts; a warning where it is not. Files without
# figures say so.
grep -qE '^sheaf in training: KL per pair [^ ]+, kappa [^ ]+, angle [^ ]+ deg \(at 5/50/95%\)$' none.txt ||
  fail "explore prints no figures: $(cat none.txt)"
python3 - << 'END' || fail "figures on the page"
import json, re
run = json.load(open("history.json"))["splits"][0]["sheaf"]
page, printed = open("bsnn/index.html").read(), " ".join(open("none.txt").read().split())
shown = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page))
assert shown["validation loss"] == "%.3f" % run["loss"] and shown["KL per pair"] == "%.3g" % run["kl_per_pair"]
for name, key in (("maps permuted", "permuted"), ("drawn from the prior", "prior"), ("identity", "identity")):
    assert shown[name] == "%+.3f" % run[key]["rise"]
kappa = run["spread"]["kappa"]
assert shown["kappa"] == "/".join("%.3f" % kappa[level] for level in ("5%", "50%", "95%"))
assert page.index("accuracy, test nodes") < page.index("Is the sheaf used?") < page.index("<figure>")
assert run["warning"] is not None  # of seven validation nodes and twenty epochs
assert f'<p class="warning">{run["warning"]}</p>' in page and run["warning"] in printed
END
python3 - << 'END'
import zipfile
with zipfile.ZipFile("bsnn.npz") as old, zipfile.ZipFile("older.npz", "w") as new:
    for name in old.namelist():
        if name != "sheaf_use.npy":
            new.writestr(name, old.read(name))
END
"$bin/explore" --sheaf older.npz --output older > older.txt || fail "explore a file without figures"
! grep -q sheaf older.txt || fail "figures that no file has: $(cat older.txt)"
grep -q 'No figures say whether the sheaf is used' older/index.html || fail "the page does not say that there are no figures"
# A panel for the encoder and one for each layer.
[ "$(grep -o 'after layer [0-9]*' bsnn/layers.svg | sort -u | wc -l)" -eq 2 ] || fail "not two layers"
# Another family, a deterministic model, the same folder once more; fixed maps have nothing to show but the nodes.
"${train[@]}" --epochs 5 --model nsd --maps diagonal --sheaf nsd.npz --report short.json > /dev/null || fail "train nsd"
"$bin/explore" --sheaf nsd.npz --output nsd > /dev/null && "$bin/explore" --sheaf nsd.npz --output nsd/ > /dev/null \
  || fail "explore nsd"
check_page nsd classes uncertainty edges histograms spectrum layers rejection
"${train[@]}" --epochs 5 --model nsd --maps diagonal --report history-nsd.json --history > /dev/null || fail "train --history"
"${train[@]}" --epochs 5 --seeds 3,5 --report seeds.json --history > /dev/null || fail "train --seeds"
! grep -rq 'Mutual information' nsd || fail "a deterministic model has mutual information"
"${train[@]}" --epochs 5 --model nsd --maps identity --sheaf identity.npz > /dev/null || fail "train identity"
"$bin/explore" --sheaf identity.npz --output identity > /dev/null || fail "explore identity"
check_page identity classes uncertainty spectrum layers rejection
! grep -qi 'sheaf is' identity/index.html || fail "identity maps have figures of a sheaf"
# Maps of nodes: how strongly each listens and speaks, where the maps have scales.
node_maps() { "${train[@]}" --epochs 5 --sheaf "$1.npz" "${@:2}" > /dev/null && "$bin/explore" --sheaf "$1.npz" --output "$1" > /dev/null; }
node_maps csnn --model csnn || fail "explore csnn"
check_page csnn classes uncertainty scales layers roles rejection
for part in 'conformal maps of nodes' 'Listening' 'mean scales'; do
  grep -rqF "$part" csnn || fail "'$part' of node maps is not shown"
done
node_maps bcsnn --model bcsnn || fail "explore bcsnn"
check_page bcsnn classes uncertainty scales layers roles rejection
grep -rq 'Mutual information' bcsnn || fail "a Bayesian cooperative model has no mutual information"
node_maps rotations --model csnn --no-conformal || fail "explore rotations of nodes"
check_page rotations classes uncertainty layers rejection

# A graph that nobody knows the classes of, with edges that are all alike.
mkdir unknown
printf 'node\tnode\n0\t1\n1\t2\n' > unknown/out1_graph_edges.txt
features=$(printf '0,%.0s' $(seq 33))
printf 'node\tfeature\tlabel\n0\t%s1\t-1\n1\t%s1\t-1\n2\t%s1\t-1\n' "$features" "$features" "$features" \
  > unknown/out1_node_feature_label.txt
"${train[@]}" --epochs 5 --save bsnn.safetensors > /dev/null || fail "train --save"
"$bin/predict" --model bsnn.safetensors --dataset unknown --sheaf unknown.npz > /dev/null || fail "predict --sheaf"
"$bin/explore" --sheaf unknown.npz --dataset unknown --output unlabelled > unlabelled.txt || fail "explore an unlabelled graph"
grep -q '^sheaf in training: KL per pair ' unlabelled.txt || fail "no figures of the training on another graph: $(cat unlabelled.txt)"
check_page unlabelled classes uncertainty edges histograms spectrum layers

# Keys have the names of classes, of the dataset or, where nobody knows its classes, of the model.
mkdir people strangers
{ echo "name,label,x,y"; for u in $(seq 0 3 29); do echo "a$u,it's,1,0.$u"; echo "b$u,<née & Zoë,0,0.$u"; echo "c$u,7,0.5,0.$u"; done; } \
  > people/nodes.csv
{ echo "source,target"; for u in $(seq 0 3 29); do echo "a$u,b$u"; echo "b$u,c$u"; echo "a$u,c$(((u + 3) % 30))"; done; } \
  | tee people/edges.csv > strangers/edges.csv
cut -d, -f1,3- people/nodes.csv > strangers/nodes.csv
"$bin/train" --dataset people --make-splits 60/20/20 --split-count 1 --stalk-dim 2 --channels 4 --layers 2 --epochs 20 --sheaf people.npz \
  --save people.safetensors > /dev/null || fail "train with names of classes"
"$bin/explore" --sheaf people.npz --dataset people --output people-pictures > /dev/null || fail "explore names of classes"
check_page people-pictures classes uncertainty edges histograms spectrum layers rejection
"$bin/predict" --model people.safetensors --dataset strangers --sheaf strangers.npz > /dev/null || fail "predict without labels"
"$bin/explore" --sheaf strangers.npz --dataset strangers --output strangers-pictures > /dev/null || fail "explore without labels"
for title in "it's" '&lt;née &amp; Zoë' 'class 7'; do
  grep -qF "<text>$title</text>" people-pictures/classes.svg || fail "no '$title' in the key"
done
grep -qE "<text>(it's|class 7|&lt;née)" strangers-pictures/classes.svg || fail "the model's names of classes are not in the key"
! grep -qE '<text>class [0-2]</text>' people-pictures/classes.svg strangers-pictures/classes.svg || fail "a key has numbers for names"

explore=("$bin/explore" --sheaf bsnn.npz --output out)
refuse '^explore: --shef is not an option; the closest is --sheaf;' "$bin/explore" --shef bsnn.npz --output out
refuse 'bsnn\.npz: belongs to a graph of 34 nodes; synthetic has 100' "${explore[@]}" --dataset synthetic --synthetic-nodes 100
refuse 'bsnn\.npz: belongs to a graph of 78 edges; synthetic has 34' "${explore[@]}" --dataset synthetic --synthetic-nodes 34 \
  --synthetic-classes 2 --synthetic-degree 2
refuse 'bsnn\.npz: belongs to another graph than synthetic: edge' "${explore[@]}" --dataset synthetic --synthetic-nodes 34 \
  --synthetic-classes 2 --synthetic-degree 4.59
refuse 'nothing\.npz' "$bin/explore" --sheaf nothing.npz --output out
refuse "key 'node_count' is missing" "$bin/explore" --sheaf "$root/tests/golden/nsd_so2.npz" --output out
refuse 'split: 99' "${explore[@]}" --split 99
refuse 'short\.json: has no history' "${explore[@]}" --report short.json
refuse 'history\.json: has no training on split 1' "${explore[@]}" --report history.json --split 1
echo '{"splits": [{"history": {}}]}' > odd.json
sed 's/"dataset": "karate"/"dataset": "texas"/' history.json > other.json
refuse "other\.json: is a report of 'texas', but --dataset is 'karate'" "${explore[@]}" --report other.json
refuse 'odd\.json: is not a report of train' "${explore[@]}" --report odd.json
refuse 'bsnn\.npz: is not a report of train' "${explore[@]}" --report bsnn.npz
refuse 'history-nsd\.json: is of nsd with diagonal maps, but --sheaf of bsnn with special-orthogonal maps' "${explore[@]}" \
  --report history-nsd.json
refuse 'seeds\.json: has 2 such trainings; --split and --seed choose one: split 0, seed 3; split 0, seed 5' "${explore[@]}" \
  --report seeds.json
refuse 'seeds\.json: has no training on split 0 with seed 4' "${explore[@]}" --report seeds.json --split 0 --seed 4
"$bin/explore" --sheaf bsnn.npz --report seeds.json --seed 5 --output fifth > /dev/null || fail "explore --seed"
grep -q 'of split 0, seed 5 over the epochs' fifth/index.html || fail "the page does not say which training it shows"
mkdir page
cp bsnn.npz page/index.html
refuse '--sheaf: page/index\.html is a file that --output writes' "$bin/explore" --sheaf page/index.html --output page/
cp history.json page/history.svg
refuse '--report: page/history\.svg is a file that --output writes' "$bin/explore" --sheaf bsnn.npz --report page/history.svg --output page
ls people > before.txt
refuse '--output: people is the folder of --dataset; the page needs a folder of its own' \
  "$bin/explore" --sheaf people.npz --dataset people/ --output people
ls people | cmp - before.txt || fail "explore wrote into the folder of the dataset"
refuse '--seed: -1 is not allowed; must be at least 0' "${explore[@]}" --report seeds.json --seed -1
refuse 'nowhere/out' "$bin/explore" --sheaf bsnn.npz --output nowhere/out
refuse 'output: history\.json' "$bin/explore" --sheaf bsnn.npz --output history.json
refuse 'sheaf' "$bin/explore" --output out
refuse 'gnuplot: not found; install it' env PATH=/nowhere "${explore[@]}"
# A signal that ends gnuplot, as Ctrl-C does, or that explore gets, ends explore, and nothing is left behind.
mkdir ended temporary
for signal in INT TERM; do
  for whose in '$$' '$(cat explore.pid)'; do
    printf '#!/bin/sh\n[ "$1" = --version ] && exit\nkill -%s %s\nsleep 0.1\n' $signal "$whose" > ended/gnuplot
    [ "$signal $whose" != 'INT $(cat explore.pid)' ] || continue  # std::system() ignores it
    chmod +x ended/gnuplot
    PATH=$PWD/ended:$PATH TMPDIR=$PWD/temporary sh -c 'echo $$ > explore.pid; exec "$@"' sh "${explore[@]}" > /dev/null 2> error.txt && fail "no signal"
    number=$(kill -l $signal)
    [ "$(cat error.txt)" = "explore: interrupted by signal $number; pictures are missing" ] || fail "SIG$signal: $(cat error.txt)"
    [ ! -e out ] && [ -z "$(ls temporary)" ] || fail "explore leaves files after SIG$signal: $(ls out temporary)"
  done
done
echo "explore behaves"
