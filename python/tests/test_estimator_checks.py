"""scikit-learn's own checks of estimators. A network of nodes without edges is a classifier of rows."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from sheafnn import SheafClassifier


@parametrize_with_checks(
    [SheafClassifier("nsd", "identity", 1, epochs=200),
     SheafClassifier(stalk_dim=2, epochs=100)],
)
def test_scikit_learn_says(estimator, check):
    check(estimator)
