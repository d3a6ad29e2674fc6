# The public names, in one place: `lazy.attach` reads this file, and so do type checkers.

# rooms
from . import adapters as adapters
from . import baselines as baselines
from . import bounds as bounds
from . import classes as classes
from . import defaults as defaults
from . import environments as environments
from . import fitting as fitting
from . import io as io
from . import kernels as kernels
from . import laboratory as laboratory
from . import problem as problem
from . import programs as programs
from . import radii as radii
from . import statistics as statistics
from . import verification as verification

# bounds
from .bounds.average_reward import bound_average_reward as bound_average_reward
from .bounds.comparing import compare as compare
from .bounds.comparison import NamedPolicy as NamedPolicy
from .bounds.correction import correct as correct
from .bounds.cross_fitted import cross_fitted_interval as cross_fitted_interval
from .bounds.diagnosis import diagnose as diagnose
from .bounds.evaluation import Evaluation as Evaluation
from .bounds.evaluation import evaluate as evaluate
from .bounds.interval import Interval as Interval
from .bounds.logging_policy import logged_value as logged_value
from .bounds.monitor import Monitor as Monitor
from .bounds.selected import bound_rkhs as bound_rkhs
from .bounds.selected import bound_selected as bound_selected
from .bounds.sensitivity import study as study
from .bounds.stream_answer import stream_value as stream_value
from .bounds.stream_diagnosis import diagnose_stream as diagnose_stream
from .bounds.stream_monitor import StreamMonitor as StreamMonitor
from .bounds.streamed import bound_stream as bound_stream
from .bounds.streamed import bound_sums as bound_sums
from .bounds.value import bound_ladder as bound_ladder
from .bounds.value import bound_value as bound_value
from .bounds.verifying import verify as verify

# the class of Q functions
from .classes.features import RandomFourier as RandomFourier
from .classes.features import TabularFeatures as TabularFeatures
from .classes.linear_q import LinearQ as LinearQ
from .classes.neural import NeuralFeatures as NeuralFeatures
from .classes.precomputed import Precomputed as Precomputed
from .classes.rkhs import KernelSections as KernelSections
from .classes.semi_parametric import SemiParametric as SemiParametric

# errors
from .errors import AopeError as AopeError
from .errors import InvalidFile as InvalidFile
from .errors import InvalidInput as InvalidInput
from .errors import MissingExtra as MissingExtra

# fitting, on earlier rows
from .fitting.least_loss import fit_q as fit_q

# files and data frames
from .io.d3rlpy import from_d3rlpy as from_d3rlpy
from .io.frames import from_dataframe as from_dataframe
from .io.frames import starts_from_dataframe as starts_from_dataframe
from .io.parquet import save_starts as save_starts
from .io.parquet import save_transitions as save_transitions
from .io.reading import load_transitions as load_transitions
from .io.scanning import TransitionScan as TransitionScan
from .io.scanning import scan_transitions as scan_transitions
from .io.starts import load_starts as load_starts

# test kernels
from .kernels.kernel import Gaussian as Gaussian
from .kernels.kernel import Laplace as Laplace
from .kernels.kernel import Product as Product
from .kernels.kernel import Tabular as Tabular
from .kernels.random_features import RandomFeatureKernel as RandomFeatureKernel

# the question
from .problem.assumptions import Assumptions as Assumptions
from .problem.assumptions import RelativeNorm as RelativeNorm
from .problem.average_reward import AverageReward as AverageReward
from .problem.gaussian_policy import GaussianPolicy as GaussianPolicy
from .problem.mixture import EpsilonGreedy as EpsilonGreedy
from .problem.mixture import MixturePolicy as MixturePolicy
from .problem.naming import Naming as Naming
from .problem.policy import DeterministicPolicy as DeterministicPolicy
from .problem.policy import DiscretePolicy as DiscretePolicy
from .problem.policy import SampledPolicy as SampledPolicy
from .problem.policy import TabulatedPolicy as TabulatedPolicy
from .problem.problem import Problem as Problem
from .problem.problem import Question as Question
from .problem.softmax_policy import SoftmaxPolicy as SoftmaxPolicy
from .problem.statements import Guarantee as Guarantee
from .problem.statements import Statement as Statement
from .problem.statements import Status as Status
from .problem.step_knowledge import StepKnowledge as StepKnowledge
from .problem.terminal_region import TerminalRegion as TerminalRegion
from .problem.transitions import StartStates as StartStates
from .problem.transitions import Transitions as Transitions
from .radii.choice import Choice as Choice
from .statistics import engines as engines

# what results say
from .statistics.estimates import QColumns as QColumns

# logs that do not fit into memory
from .statistics.partial import PartialStatistic as PartialStatistic
from .statistics.stream_question import StreamQuestion as StreamQuestion
from .statistics.streaming import partial_statistic as partial_statistic
from .statistics.streaming import stream_statistic as stream_statistic

__version__: str
