#!/usr/bin/env bash
# A graph that no paper knows, as text files: train and predict as a user would type it, and what comes back by name.
# usage: check_csv_story.sh FOLDER_OF_PROGRAMS
# Needed are the models Diagonal_2 and GivenDiagonal_2.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tests/program_checks.sh"
enter_work_folder "$1"

# 120 people of three trades, joined in a ring and to others of their trade; every seventh trade is unknown. One has a
# name with a comma and quotes, and nobody knows node 119.
mkdir people
awk -v edges=people/edges.csv -v nodes=people/nodes.csv 'BEGIN {
  trade[0] = "baker"; trade[1] = "smith"; trade[2] = "\"miller, \"\"old\"\"\""
  print "name,age,trade,height" > nodes
  print "who,whom" > edges
  for (u = 0; u < 120; ++u) {
    name = u == 5 ? "\"O\x27Hara, \"\"Kit\"\"\"" : "person " u
    label = u % 7 == 6 ? "" : trade[u % 3]
    print name "," u % 3 + 0.25 * (u % 2) "," label "," (u % 3 == 1) - 0.5 > nodes
    if (u > 0 && u < 119) print before "," name > edges
    if (u >= 3 && u < 119 && u % 5 == 0) print "person " u - 3 "," name > edges
    before = name
  }
  print "person 7,person 7\nperson 8,person 7" > edges
}'
train=("$bin/train" --dataset people --label trade --maps diagonal --stalk-dim 2 --channels 8 --layers 2 --input-dropout 0)
"${train[@]}" --epochs 60 --make-splits 60/20/20 --split-count 2 --save people.safetensors --report people.json \
  > train.txt || fail "train"
grep -q '^people: 120 nodes, .* 3 classes$' train.txt || fail "another summary: $(cat train.txt)"
grep -q '^people: edge list: 1 self-loop dropped, 1 pair merged ' train.txt || fail "dropped pairs are not told"
grep -qxF 'labels: 34 baker, 35 miller, "old", 34 smith, 17 unknown' train.txt || fail "labels are not counted: $(cat train.txt)"
grep -qxF '2 models: people-0.safetensors to people-1.safetensors' train.txt || fail "models are not named: $(cat train.txt)"
for split in 0 1; do
  [ -s people-$split.safetensors ] || fail "no model of split $split"
done
grep -q '"percentages": "60/20/20"' people.json || fail "the report does not tell how the splits were made"
# The features tell the trade: far above the third that chance gives.
awk '/^ mean / {n++; if ($3 + 0 < 60) bad = 1} END {exit bad || n != 1}' train.txt || fail "nothing learned: $(cat train.txt)"

"$bin/predict" --model people-0.safetensors --dataset people --label trade --output nodes.csv --sheaf sheaf.npz \
  > predict.txt || fail "predict"
grep -q 'of all labelled nodes have the class of their label' predict.txt || fail "labels are not compared"
[ -s sheaf.npz ] || fail "no sheaf"
# The picture, where there is gnuplot.
if [ -x "$bin/explore" ] && command -v gnuplot > /dev/null; then
  "$bin/explore" --sheaf sheaf.npz --dataset people --label trade --output pictures > /dev/null || fail "explore"
  grep -q '<img src="classes.svg"' pictures/index.html && grep -q '</svg>' pictures/classes.svg || fail "no picture"
fi
# Classes are told by name: one that the model does not know, and that is numbered before the others, moves nobody else.
cp -r people renamed
sed -i 's/,smith,/,apothecary,/' renamed/nodes.csv
apothecaries=$(grep -c ',apothecary,' renamed/nodes.csv)
"$bin/predict" --model people-0.safetensors --dataset renamed --label trade --output renamed.csv --sheaf renamed.npz > renamed.txt
grep -q "^renamed: $apothecaries of [0-9]* labels are of classes that the model does not know" renamed.txt \
  || fail "unknown classes: $(cat renamed.txt)"
cmp nodes.csv renamed.csv || fail "other names of classes change predictions"
share=$(sed -n 's/^\([0-9.]*\)% of all labelled nodes.*/\1/p' renamed.txt)
if [ -x "$bin/explore" ] && command -v gnuplot > /dev/null; then
  "$bin/explore" --sheaf renamed.npz --dataset renamed --label trade --output renamed-pictures > /dev/null || fail "explore"
  grep -qF "$share %" renamed-pictures/index.html || fail "explore has another accuracy than predict, $share"
fi
[ "$(wc -l < nodes.csv)" -eq 121 ] || fail "nodes.csv has not 120 nodes"
head -n 1 nodes.csv | grep -qxF 'node,name,class,p_baker,"p_miller, ""old""",p_smith,entropy,mutual_information' \
  || fail "another header: $(head -n 1 nodes.csv)"
grep -qE '^5,"O'\''Hara, ""Kit""",(baker|smith|"miller, ""old"""),' nodes.csv || fail "node 5: $(sed -n 7p nodes.csv)"
grep -qE '^119,person 119,(baker|smith|"miller)' nodes.csv || fail "node 119: $(tail -n 1 nodes.csv)"
# The class is the one with the largest probability.
grep -v '"' nodes.csv | awk -F, 'NR > 0 {n++; best = $4 > $5 ? ($4 > $6 ? "baker" : "smith") : ($5 > $6 ? "miller" : "smith")
  if (best != "miller" && $3 != best) bad = 1} END {exit bad || n < 60}' || fail "classes and probabilities differ"

# Another graph with the same columns, of which only one trade is known: classes are the model's.
mkdir others
printf 'name;age;trade;height\nann;0;smith;-0.5\nben;1;;0.5\ncyd;2;carpenter;-0.5\n' > others/nodes.csv
printf 'ann\tben\nben\tcyd\n' > others/edges.tsv
"$bin/predict" --model people-0.safetensors --dataset others --label trade --output others.csv > others.txt \
  || fail "predict others"
[ "$(cut -d, -f2 others.csv | tr '\n' ' ')" = 'name ann ben cyd ' ] || fail "other names: $(cat others.csv)"
grep -qE '^(0|100)\.0% of all labelled nodes' others.txt || fail "labels of others: $(cat others.txt)"

# Words that mean a missing value are refused, unless an option says what they are; it may be empty.
sed -i 's/;;/;None;/' others/nodes.csv
others=("$bin/predict" --model people-0.safetensors --dataset others --label trade --output out.csv)
refuse "others/nodes.csv:3: column 'trade': label 'None' is not allowed; .*--missing-labels" "${others[@]}"
"${others[@]}" --missing-labels 'n.d.,None' > words.txt || fail "--missing-labels"
cmp out.csv others.csv || fail "a word for an unknown label changes predictions"
grep -q '^others: 1 of 2 labels are of classes that the model does not know' words.txt \
  || fail "None: $(cat words.txt)"
"${others[@]}" --missing-labels '' > words.txt || fail "--missing-labels without words"
grep -q '^others: 2 of 3 labels are of classes that the model does not know' words.txt \
  || fail "a class None: $(cat words.txt)"
refuse 'missing-labels: a .* belongs to a --dataset of files' "$bin/train" --dataset karate --missing-labels a

# Columns of texts: the message has the ways out, and an option leaves them out, for predictions too.
mkdir crm
awk '{print $0 (NR == 1 ? ",joined on,town" : ",2024-05-0" NR % 7 + 1 ",north")}' people/nodes.csv > crm/nodes.csv
awk 'NR == 1 {print $0 ",since"; next} {print $0 "," 2000 + NR}' people/edges.csv > crm/edges.csv
crm=("$bin/train" --label trade --maps diagonal --stalk-dim 2 --channels 8 --epochs 3 --make-splits 60/20/20 --split-count 1)
refuse "crm/nodes.csv:2: column 'joined on': '2024.*; features are numbers: .*--ignore-columns" "${crm[@]}" --dataset crm
refuse "crm/nodes.csv:1: no column is called 'Town' \\(--ignore-columns" "${crm[@]}" --dataset crm --ignore-columns Town
refuse "crm/edges.csv:3: column 'since' is .*--ignore-edge-columns" "${crm[@]}" --dataset crm --ignore-columns 'joined on,town'
without=(--ignore-columns 'joined on,town' --ignore-edge-columns since)
refuse 'ignore-columns: .* belongs to a --dataset of text files' "$bin/train" --dataset karate --ignore-columns town
"${crm[@]}" --dataset crm "${without[@]}" --save crm.safetensors | grep -v '^crm: ' > crm.txt || fail "--ignore-columns"
"${crm[@]}" --dataset people --save without.safetensors | grep -v '^people: ' > without.txt || fail "train without columns"
diff <(sed 's/ [0-9.]*$//' crm.txt) <(sed 's/ [0-9.]*$//' without.txt) || fail "columns that are not read change the training"
"$bin/predict" --model crm.safetensors --dataset crm --label trade "${without[@]}" --output crm.csv > /dev/null &&
  "$bin/predict" --model without.safetensors --dataset people --label trade --output without.csv > /dev/null && cmp crm.csv without.csv ||
  fail "predict --ignore-columns"

# The same splits with the same seed, others with another.
for seed in 0 1; do
  "${train[@]}" --epochs 2 --make-splits 50/25/25 --split-count 1 --split-seed $seed --report seed$seed.json > /dev/null \
    || fail "train --split-seed"
done
"${train[@]}" --epochs 2 --make-splits 50/25/25 --split-count 1 --report default.json > /dev/null || fail "train --make-splits"
losses() { grep '"validation_loss"' "$1" || fail "no loss in $1"; }
[ "$(losses seed0.json)" = "$(losses default.json)" ] || fail "the same seed makes other splits"
[ "$(losses seed0.json)" != "$(losses seed1.json)" ] || fail "another seed makes the same splits"
"$bin/train" --dataset people --label trade --identity-features --maps diagonal --stalk-dim 2 --channels 4 --epochs 1 \
  --make-splits 60/20/20 --split-count 1 > one_hot.txt && grep -q ' 120 features, ' one_hot.txt || fail "identity features"

# Without test nodes, then without validation nodes as well; the preset is chosen all the same.
"${train[@]}" --epochs 8 --patience 2 --make-splits 80/20/0 --split-count 2 --report untested.json --save untested.safetensors \
  > untested.txt || fail "train --make-splits 80/20/0"
grep -q '^preset small: ' untested.txt || fail "another preset: $(cat untested.txt)"
[ "$(grep -cE '^ +[01] +[0-9]+ +[0-9.]+% +- +- +- +[-+][0-9.]+ +[0-9.]+$' untested.txt)" -eq 2 ] || fail "test nodes: $(cat untested.txt)"
grep -qE '^ mean +[0-9.]+% +- +- +- +[-+][0-9.]+ +[0-9.]+$' untested.txt || fail "means without test nodes: $(cat untested.txt)"
for figure in test_accuracy nll ece; do
  [ "$(grep -c "\"$figure\": null" untested.json)" -ge 2 ] || fail "$figure without test nodes: $(cat untested.json)"
done
! grep -qE 'confusion_matrix|"f1"|reliability' untested.json || fail "figures of no node: $(cat untested.json)"
"$bin/predict" --model untested-0.safetensors --dataset people --label trade > /dev/null || fail "predict without test nodes"
"${train[@]}" --epochs 8 --patience 2 --make-splits 100/0/0 --split-count 1 --report all.json --checkpoint states > all.txt \
  || fail "train --make-splits 100/0/0"
grep -qE '^ +0 +7 +- +- +- +- +- +[0-9.]+$' all.txt || fail "the last epoch is not the best: $(cat all.txt)"
grep -q '"stopped_by": "epochs"' all.json || fail "patience without validation nodes"
"$bin/train" --resume states --epochs 9 > more.txt || fail "train --resume without validation nodes"
grep -qE '^ +0 +8 +- ' more.txt || fail "the training did not go on: $(cat more.txt)"

# The example of docs/data.md, as it stands there; its edge list repeats nothing.
mkdir example
for file in edges nodes; do
  awk -v title="\`$file.csv\` says" '/^## Delimited/ {exit} index($0, title) {wait = 1} /^```$/ {on = 0} on; /^```csv$/ && wait {on = 1; wait = 0}' \
    "$root/docs/data.md" > example/$file.csv
  [ "$(wc -l < example/$file.csv)" -ge 10 ] || fail "docs/data.md has no $file.csv"
done
"$bin/train" --dataset example --maps diagonal --stalk-dim 2 --epochs 5 --save example.safetensors > example.txt \
  || fail "train on the example of docs/data.md"
grep -q '^example: 9 nodes, 10 edges, .* 2 features, 2 classes$' example.txt || fail "another example: $(cat example.txt)"
! grep -q 'edge list' example.txt || fail "dropped pairs are told where there are none"
"$bin/predict" --model example.safetensors --dataset example --output classes.csv > /dev/null || fail "predict the example"
header=$(head -n 1 classes.csv)
grep -qxF "$header" "$root/docs/data.md" || fail "docs/data.md shows another header than $header"

# A checkpoint with a name too few is damaged.
names=$(grep -aoE '"class_names":"[^"]*"' example.safetensors | head -n 1)
sed "s/$names/${names/,/;}/" example.safetensors > fewer.safetensors
refuse 'fewer\.safetensors: class_names has 1 names; there are 2 classes' "$bin/predict" --model fewer.safetensors --dataset example \
  --output out.csv

# Validation nodes that become test nodes make other data.
sed -i 's/,test$/,/' example/nodes.csv
small=("$bin/train" --maps diagonal --stalk-dim 2 --dataset example --epochs 2)
"${small[@]}" --checkpoint untested > /dev/null && "$bin/train" --resume untested > /dev/null || fail "resume without test nodes"
sed -i 's/,validation$/,test/' example/nodes.csv
refuse "training\.json: data was 'example .*' and is 'example " "$bin/train" --resume untested

# Types of edges and nodes: columns of the files, weights and stalks of the model, and what predict knows of them.
mkdir typed
awk 'NR == 1 {print $0 ",type"; next} {print $0 "," (NR % 2 ? "knows" : "helps")}' people/edges.csv |
  grep -v 'person 7,person 7\|person 8,person 7' > typed/edges.csv
awk 'NR == 1 {print $0 ",type"; next} {print $0 "," (NR % 3 ? "old" : "young")}' people/nodes.csv > typed/nodes.csv
typed=("${train[@]/people/typed}" --epochs 3 --make-splits 60/20/20 --split-count 1 --model nsd)
refuse "typed/edges.csv:3: column 'type' is .*--edge-types" "${typed[@]}" --stalks young=1
refuse "typed/nodes.csv:2: column 'type': 'old' is not a finite number; --stalks of the program train .*leave it out" "${typed[@]}" --edge-types
"${typed[@]}" --edge-types --stalks young=1 --edge-stalks helps=1 --save typed.safetensors --sheaf typed.npz > /dev/null \
  || fail "train with types"
"$bin/predict" --model typed.safetensors --dataset typed --label trade --output typed.csv --sheaf again.npz > /dev/null \
  && cmp typed.npz again.npz || fail "predict with types"
refuse "stalks: child=1 .*no such type" "${typed[@]}" --edge-types --stalks child=1
refuse "stalks: young=2 .*the type is named twice" "${typed[@]}" --edge-types --stalks young=1,young=2
refuse "stalks: 3 .*between 1 and 2" "${typed[@]}" --edge-types --stalks young=3
refuse "people/edges.csv: has no column 'type'" "$bin/predict" --model typed.safetensors --dataset people --label trade
# Known maps of each type of edges, whose rows have names.
find_numpy
relations() {  # FILE MAPS_OF_KNOWS MAPS_OF_HELPS FIRST_NAME SECOND_NAME
  $python -c 'import json, sys, numpy
numpy.savez(sys.argv[1], table=[json.loads(maps) for maps in sys.argv[2:4]], types=sys.argv[4:])' "$@"
}
alike='[[1, 1], [1, 1]]' unlike='[[1, 0.5], [-1, -0.5]]'
relations relations.npz "$alike" "$unlike" knows helps
relations turned.npz "$unlike" "$alike" helps knows
relations exchanged.npz "$alike" "$unlike" helps knows
relations few.npz "$alike" "$unlike" knows hates
mkdir related friends
cp typed/edges.csv people/nodes.csv related
grep -v helps related/edges.csv > friends/edges.csv
cp people/nodes.csv friends
related=("${train[@]/people/related}" --epochs 3 --make-splits 60/20/20 --split-count 1 --model snn --given-sheaf)
refuse "related/edges.csv:3: column 'type' is .*--edge-types" "${related[@]}" relations.npz
refuse "few.npz: types: the graph's edges have a type 'helps', and no row is of it" "${related[@]}" few.npz --edge-types
refuse '--edge-stalks: given is not allowed; the model snn has no types' \
  "${related[@]}" relations.npz --edge-types --edge-stalks helps=1
"${train[@]/people/related}" --epochs 1 --make-splits 60/20/20 --split-count 1 --model nsd --edge-types --sheaf own.npz > /dev/null ||
  fail "train with types alone"
refuse '--edge-types: given is not allowed; own.npz has no table of maps, or labels of its own' "${related[@]}" own.npz --edge-types
"${related[@]}" relations.npz --edge-types --save related.safetensors > /dev/null || fail "train with maps of types"
for file in relations turned exchanged; do
  "$bin/predict" --model related.safetensors --dataset related --label trade --given-sheaf $file.npz --output $file.csv > /dev/null ||
    fail "predict with maps of types"
done
cmp relations.csv turned.csv || fail "the order of a table's rows matters"
! cmp -s relations.csv exchanged.csv || fail "the names of a table's rows do not matter"
"$bin/predict" --model related.safetensors --dataset friends --label trade --given-sheaf relations.npz > /dev/null ||
  fail "predict with maps of types that some edges lack"
sed -i '3s/[a-z]*$/hinders/' typed/edges.csv
refuse "edge type: hinders .*the model knows helps, knows" "$bin/predict" --model typed.safetensors --dataset typed --label trade

quick=("${train[@]}" --epochs 2 --report out.json --save out.safetensors)
refuse 'people: splits: 0 .*--make-splits' "${quick[@]}"
refuse 'make-splits: 60/20 ' "${quick[@]}" --make-splits 60/20
refuse 'make-splits: 60/20/30 ' "${quick[@]}" --make-splits 60/20/30
refuse 'make-splits: 0/80/20 .*only the first must not be 0' "${quick[@]}" --make-splits 0/80/20
refuse 'split-count: 0' "${quick[@]}" --make-splits 60/20/20 --split-count 0
refuse 'stratified' "${quick[@]}" --stratified
refuse "people/nodes.csv:2: column 'trade': 'baker' is not .* no column is called 'label' .--label " "${quick[@]/trade/label}" --make-splits 60/20/20
sed -i '1s/.*/person 500,person 501/' people/edges.csv
refuse "people/edges.csv:1: node 'person 500' is not in people/nodes.csv" "${quick[@]}" --make-splits 60/20/20
sed -i '1s/.*/# who\twhom/' people/edges.csv
echo 'person 1,nobody' >> people/edges.csv
refuse "people/edges.csv:[0-9]+: node 'nobody' is not in people/nodes.csv" "${quick[@]}" --make-splits 60/20/20

# Numbers in place of classes, some of them unknown: one column, or several.
mkdir houses
awk -v edges=houses/edges.csv -v nodes=houses/nodes.csv 'BEGIN {
  print "house,age,rooms,price,visits,grade,sunny" > nodes
  print "source,target" > edges
  for (u = 0; u < 120; ++u) {
    age = u * 7 % 10; rooms = 1 + u * 3 % 5
    print "house " u "," age "," rooms "," (u % 9 == 8 ? "" : 100 + 20 * rooms - 3 * age) "," 2 * rooms "," \
      1 + (rooms > 1) + (rooms > 3) "," (age > 5) > nodes
    if (u > 0) print "house " u - 1 ",house " u > edges
  }
}'
# The commands of docs/numbers.md, as they stand there, with the files that docs/data.md shows.
commands=$(sed -n '/^train --dataset people --target height/,/^```$/p' "$root/docs/numbers.md" | sed '$d')
[ "$(grep -c '^\(train\|predict\) ' <<< "$commands")" -eq 2 ] || fail "docs/numbers.md has no commands of people"
mkdir -p page/people
for file in edges nodes; do
  sed -n "/^ *.*\`$file\.csv\` says/,/^\`\`\`$/p" "$root/docs/data.md" | sed '1,/^```csv$/d;$d' > page/people/$file.csv
  [ -s page/people/$file.csv ] || fail "docs/data.md has no $file.csv of people"
done
(cd page && PATH=$bin:$PATH bash -e <<< "$commands" > heights.txt) || fail "the commands of docs/numbers.md fail"
grep -q '^people: 9 nodes, 10 edges, .* gaussian targets: height$' page/heights.txt || fail "another summary: $(cat page/heights.txt)"
[ "$(head -1 page/heights.csv)" = node,name,height,height_std,height_lower,height_upper ] || fail "$(head -1 page/heights.csv)"
typed_train=(train --dataset houses --target price,visits --loss gaussian --make-splits 60/20/20 --split-count 1 --save houses.safetensors)
typed_predict=(predict --model houses.safetensors --dataset houses --output prices.csv)
small=(--maps diagonal --stalk-dim 2 --channels 8 --layers 2 --epochs 120)
numbers=("$bin/train" --dataset houses "${small[@]}" --make-splits 60/20/20 --split-count 1)
"$bin/${typed_train[0]}" "${typed_train[@]:1}" "${small[@]}" --coverage 0.8 --report houses.json \
  --predictions houses.npz --checkpoint houses-states > houses.txt || fail "train on numbers"
grep -q '^houses: 120 nodes, .* 4 features, gaussian targets: price, visits$' houses.txt || fail "another summary: $(cat houses.txt)"
# R2 of the test nodes, and a line for each target with its conformal intervals.
awk '/^ mean / {n++; if ($5 < 0.8) bad = 1} END {exit bad || n != 1}' houses.txt || fail "no numbers learned: $(cat houses.txt)"
for target in price visits; do
  grep -qE "^$target: mean absolute error .*; 80% intervals contain [0-9.]+%, mean width " houses.txt || fail "no line of $target"
done
"$bin/${typed_predict[0]}" "${typed_predict[@]:1}" > prices.txt || fail "predict numbers"
head -n 1 prices.csv | grep -qxF 'node,name,price,price_std,price_lower,price_upper,visits,visits_std,visits_lower,visits_upper' ||
  fail "another header: $(head -n 1 prices.csv)"
# Graphs whose targets are unknown, and other columns than targets.
cut -d , -f 1-3,6,7 houses/nodes.csv > unknown.csv
mkdir unknown && mv unknown.csv unknown/nodes.csv && cp houses/edges.csv unknown
"$bin/predict" --model houses.safetensors --dataset unknown --output unknown.csv > unknown.txt || fail "predict unknown numbers"
cmp prices.csv unknown.csv || fail "targets change predictions"
python3 - << 'END' || fail "the report, the table and the predictions differ"
import csv, json, math
report = json.load(open("houses.json"))
assert report["loss"] == "gaussian" and report["targets"] == ["price", "visits"]
known = {row["house"]: row for row in csv.DictReader(open("houses/nodes.csv"))}
rows = [row for row in csv.DictReader(open("prices.csv"))]
errors = [abs(float(known[row["name"]]["price"]) - float(row["price"])) for row in rows if known[row["name"]]["price"]]
said = next(line for line in open("prices.txt") if line.startswith("price: "))
assert math.isclose(float(said.split()[4].rstrip(",")), sum(errors) / len(errors), rel_tol=1e-3)
assert all(float(row["price_lower"]) < float(row["price"]) < float(row["price_upper"]) for row in rows)
assert report["errors"][0]["wanted_coverage"] == 0.8 and 0 < report["errors"][0]["coverage"]["mean"] <= 1
END
"$bin/predict" --model houses.safetensors --dataset houses --posterior-coverage 0.9 --output posterior.csv | \
  grep -q '^intervals: of the posterior, coverage 0.9$' || fail "no intervals of the posterior"
"$bin/train" --resume houses-states --epochs 125 --report resumed.json > resumed.txt || fail "resume numbers"
grep -q '^price: mean absolute error ' resumed.txt || fail "resumed without targets: $(cat resumed.txt)"
"${numbers[@]}" --target visits --loss poisson > counts.txt && grep -q '^visits: mean absolute error ' counts.txt || fail "counts"
"${numbers[@]}" --epochs 2 --target visits --coverage 0.99 > infinite.txt || fail "a coverage that needs more nodes"
grep -qF 'mean width inf. A coverage of 99% needs 99 validation nodes with a known target, as n of them allow at most n / (n + 1)' infinite.txt ||
  fail "infinite intervals are not explained: $(cat infinite.txt)"
! grep -q 'needs' counts.txt || fail "finite intervals: $(cat counts.txt)"
"${numbers[@]}" --target grade --loss ordinal --save grades.safetensors > /dev/null || fail "ordered classes"
"$bin/predict" --model grades.safetensors --dataset houses --output grades.csv > /dev/null || fail "predict ordered classes"
python3 - << 'END' || fail "ordered classes are not learned: $(head -n 3 grades.csv)"
import csv
rows = list(csv.DictReader(open("grades.csv")))
truth = [row["grade"] for row in csv.DictReader(open("houses/nodes.csv"))]
assert list(rows[0]) == ["node", "name", "grade", "p_1", "p_2", "p_3"]
assert sum(row["grade"] == grade for row, grade in zip(rows, truth)) > 0.8 * len(truth)
assert all(abs(sum(float(row[f"p_{k}"]) for k in (1, 2, 3)) - 1) < 1e-9 for row in rows)
END
"${numbers[@]}" --target sunny --loss multilabel > labels.txt && grep -q 'accuracy' labels.txt || fail "several labels"
few=("${numbers[@]}" --report out.json --save out.safetensors)
refuse "houses/nodes.csv:1: no column is called 'prize' " "${few[@]}" --target prize
refuse "houses/nodes.csv:1: column 'house' is the first column" "${few[@]}" --target house
refuse "loss requires --target" "${few[@]}" --loss gaussian
refuse "stop-on: roc-auc .*choose loss or accuracy" "${few[@]}" --target price --stop-on roc-auc
refuse "target excludes --label|label excludes --target" "${few[@]}" --target visits --label rooms
refuse "coverage: 1 is not allowed" "${few[@]}" --target price --coverage 1
refuse "target: price .*ordered classes are 2 to 100|target: 2 .*ordered classes are one column" "${few[@]}" --target price,visits --loss ordinal
refuse "sheaf: out.npz .*leave out --target" "${few[@]}" --target price --sheaf out.npz
refuse "karate: has no targets 'price'" "$bin/train" --dataset karate --maps diagonal --stalk-dim 2 --target price --report out.json
refuse "posterior-coverage: 0.5 .*trained on classes" "$bin/predict" --model people-0.safetensors --dataset renamed --posterior-coverage 0.5
sed -i '3s/^\([^,]*,[^,]*,[^,]*\),[^,]*/\1,many/' houses/nodes.csv
refuse "houses/nodes.csv:3: column 'price': 'many' is not a finite number; targets are numbers" "${few[@]}" --target price
echo "the story holds"
