"""scikit-learn's own checks of estimators. A network of nodes without edges classifies rows, or predicts numbers of them."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from sheafnn import SheafClassifier, SheafRegressor


@parametrize_with_checks(
    [SheafClassifier("nsd", "identity", 1, epochs=200),
     SheafClassifier(stalk_dim=2, epochs=100),
     SheafRegressor("nsd", "identity", 1, epochs=200)],
)
def test_scikit_learn_says(estimator, check):
    check(estimator)
