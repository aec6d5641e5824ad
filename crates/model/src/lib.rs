//! The plain data of Thalweg: no I/O, no clock.
//!
//! What is asked for: [`Path`], [`HostSettings`], [`Workload`], [`Scenario`]. What comes back: [`Flow`] and its
//! [`Series`], [`Verdict`], [`Remedy`], [`LabReport`], [`DiagnoseReport`], [`FixReport`].
#![warn(clippy::too_many_lines)]

mod address;
mod application;
mod bursts;
mod cause;
mod diagnosis;
mod expect;
mod facts;
mod fit;
mod flow;
mod get;
mod life;
mod listing;
mod live_path;
mod load;
mod measured;
mod metric;
mod path;
mod remedy;
mod report;
mod scenario;
mod serve;
mod settings;
pub mod since;
mod stream_load;
mod topics_report;
mod topology;
mod train_queue;
mod tune;
mod tune_attach;
mod tune_plan;
mod udp_train_report;
mod watch;
mod way;
mod workload;

pub use address::canonical;
pub use application::{Application, NameLookup, RequestTiming, RequestWaits, TlsHandshake};
pub use bursts::{
    BurstBins, BurstCell, BurstDirection, BurstFlow, BurstFlowEnds, BurstFlowSide, BurstMap, BurstMapRow, BurstResent,
    BurstSource, BurstSourceKind, BurstsReport, FlowProtocol, FlowResent, FlowResentClasses, MapPort, PortBursts,
    PortOverflow, ResentKind, ResentSegment, ResentSource,
};
pub use cause::{
    AckWait, ApplicationWindow, BucketFit, CarriedData, Cause, Clamp, Code, CongestionLosses, Context, DelayedWrites,
    Dropped, Evidence, FirstFlight, ForeignBlocks, FullAcceptQueue, FullQueue, FullSendBuffer, FullWindow, HostDrops,
    KernelCounters, LargePackets, LastSilence, Losses, LostRequest, Occurrences, Opening, OverrunBuffer,
    OvertakenPackets, PacedData, PathHolds, Pauses, PausesSeen, PolicedRate, ProgramWait, QueueDrops, QueueMarks,
    Repairs, ResetSeen, RestartTiming, Restarts, SendBufferSeen, SentAgain, Sights, SlowReader, SlowStartSeen,
    SynRequest, Timeouts, TooBigErrors, UndecidedBy, UnscaledEdge, UsedPath, WaitedFor, Wakeups, WindowGrowth,
    WriteTimer,
};
pub use diagnosis::{Finding, Limits, Verdict};
pub use expect::Expectation;
pub use facts::{
    BufferState, BurstLosses, Bursts, CongestionFamily, DelayedAcks, Delivery, Ecn, Facts, FamilyName, FastOpen,
    IdleRestarts, InitialWindow, KeepAlives, LossClass, LossFacts, Multipath, MultipathKind, PathMtu, ReceiveWindow,
    Reordering, RoundTrips, RttSource, SharedPath, SlowStart, SlowStartExit,
};
pub use fit::{
    Candidate, CaptureFit, Corner, DistinguishingTest, FitCheck, FittedModel, FittedParameter, Origin, OtherFit,
    Rejected, Rival,
};
pub use flow::{
    Flow, FlowInterval, Handshake, LossMark, MarkKind, OtherDirection, Point, Retransmits, Series, TokenBucket, Vantage,
};
pub use get::{GetChecksum, GetConnection, GetLimit, GetLimitShare, GetRanges, GetReport};
pub use life::{ConnectionReset, Failure, Life, LifePhases, LifeShares, Resent, Silence, TooSoon};
pub use listing::{
    BuiltKernel, CodeList, CodeMeaning, CodePage, KernelList, ListedKernel, ListedScenario, PathList, ScenarioList,
};
pub use live_path::{LateMicros, LiveDirection, LiveHost, LiveHostsReport, LivePathReport, LiveReport, PathVerdict};
pub use load::{Held, LoadReport, Percentiles, PlayerCount, Stalls};
pub use measured::Measured;
pub use metric::{Metric, Metrics};
pub use path::{
    AckFilter, Chance, Counted, Discipline, Distribution, Jitter, Loss, Path, PathDirection, Policer, Queue, Reorder,
    Step, Trace,
};
pub use remedy::{Applicability, Change, Kernels, Remedy, Setting, Side};
pub use report::{
    ArmComparison, ArmReport, CaptureReport, CompareReport, ComparedReport, DiagnoseReport, DiagnosisLine, Difference,
    Expected, FailedRun, FigureComparison, FixFigure, FixReport, HostReport, Interval, LabReport, Outcome, Outlier,
    RunFigures, SettingsReport, Shard,
};
pub use scenario::{Arm, Experiment, Scenario};
pub use serve::{
    ApiConfig, AuthConfig, FlvConfig, FrontConfig, HlsConfig, JournalConfig, KeepAlive, LimitsConfig, LogConfig,
    LogFormat, LogLevel, RoutesConfig, Secret, ServeConfig, TlsConfig, WebhooksConfig,
};
pub use settings::{HostSettings, RouteFeature, RouteSettings, SocketSettings};
pub use stream_load::{
    CpuShare, EndTotal, StreamCpu, StreamInterval, StreamLoadReport, StreamTest, StreamTotal, StreamVerdict,
    TcpInterval, TcpTotal, TransactionReport, UdpInterval, UdpTotal,
};
pub use topics_report::{TopicConnection, TopicReport, TopicsClock, TopicsReport};
pub use topology::{Between, HostName, Nic, Switch, Topology};
pub use train_queue::{TrainArrival, TrainQueue};
pub use tune::{TuneDifference, TuneFinding, TuneRead, TuneShow, Weight};
pub use tune_attach::{
    AttachedProgram, AttachedSettings, CanaryEffect, CongestionControl, ShareCounters, TuneAttached, TuneCanary,
    TuneCongestion, TuneDetached,
};
pub use tune_plan::{ExpectedGain, PlanStep, PlannedChange, Reach, RouteTarget, TunePlan};
pub use udp_train_report::{BufferEstimate, LossRuns, RateEstimate, TrainFinding, TrainRow, UdpTrainReport};
pub use watch::{
    Backlog, ClosedSockets, GrowingProgram, LifeLimit, LimitLife, LimitName, LimitNow, ReceiveSide, SendSide,
    SocketLimit, SocketProcess, SocketRetransmissions, SocketRow, SocketRtt, SocketState, TcpMemoryUse, WatchReport,
};
pub use way::Way;
pub use workload::{
    Amount, Burst, Command, Cross, CrossTraffic, Exchange, Part, Size, Stream, Topic, Topics, Transactions, UdpTrain,
    Workload,
};
