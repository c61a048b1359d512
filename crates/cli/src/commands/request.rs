//! The request of `simulate`: the model, its settings, and the messages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use topocoll::contention::{
    ContentionModel, Job, MODEL_PARAMETERS, MODELS, Routing, Scheduled, ScheduledSizes, Settings,
    Traffic,
};
use topocoll::formats::jsonl;
use topocoll::spec::{read_nodes, with_placement};
use topocoll::{
    Demand, ENDPOINT_PARAMETERS, Endpoint, Machine, NotApplicable, Order, Parameters, Ports,
    Problem, Rank, Schedule, Ties,
};

use crate::args;
use crate::demand::schedule_of_sizes;
use crate::host::{check_fits, memory};
use crate::machine::{Named, exchange, open, read_schedule, read_text, written};
use crate::uses::ORDER;
use crate::values::{ALL_TO_ALL, Model};

/// Most bytes of a placement file.
const LARGEST_PLACEMENT: u64 = 1 << 30;

/// Most bytes that record the rank of a node.
const NODE: u128 = 16;

/// The messages to simulate.
pub(super) enum Messages {
    /// One schedule, rank i on node i, and the sizes of its blocks where they differ.
    Schedule(Box<(Named, Option<Sized>)>),
    /// Schedules on chosen nodes.
    Jobs(Vec<Job>),
    /// A pattern's name.
    Pattern(String),
}

/// A demand matrix of all ranks of a machine.
pub(super) struct Sized {
    pub(super) demand: Demand,
    pub(super) name: String,
    /// As on the command line.
    pub(super) given: String,
}

/// The messages of a schedule.
pub(super) fn traffic<'a>(
    schedule: &'a Schedule,
    machine: &'a Machine,
    sizes: Option<&Sized>,
) -> anyhow::Result<Box<dyn Traffic + 'a>> {
    let Some(sizes) = sizes else { return Ok(Box::new(Scheduled::new(schedule, machine))) };
    let sized = ScheduledSizes::new(schedule, machine, &sizes.demand, memory());
    Ok(Box::new(sized.map_err(topocoll::Error::from)?))
}

/// The contention model of a name; `steps` is not one.
pub(super) fn model(name: Model) -> Option<&'static ContentionModel> {
    let name = match name {
        Model::Steps => return None,
        Model::Wormhole => "wormhole",
        Model::Flit => "flit",
        Model::Fluid => "fluid",
    };
    MODELS.iter().find(|model| model.name == name)
}

/// The settings of `simulate`, and the algorithm's parameters.
pub(super) fn settings(
    machine: &mut Machine,
    args: &args::Simulate,
) -> anyhow::Result<(Settings, Vec<(String, topocoll::Setting)>)> {
    if let Some(ties) = args.ties {
        let ties = match ties {
            args::Ties::Up => Ties::Up,
            args::Ties::Balanced => Ties::Balanced,
        };
        anyhow::ensure!(
            machine.set_ties(ties),
            "--ties requires a grid: {} has no routes of half a ring",
            machine.topology.short_form()
        );
    }
    let all_to_all = args.traffic.as_deref() == Some(ALL_TO_ALL);
    let (mut settings, rest) = split(machine, args.model, &args.set, all_to_all)?;
    if args.algorithm.is_none() {
        check_no_rest(&rest)?;
    }
    if args.routing == Some(args::Routing::Adaptive) {
        settings.routing = Routing::Adaptive;
    }
    Ok((settings, rest))
}

/// Without an algorithm, all parameters are those of the model.
pub(super) fn check_no_rest(rest: &[(String, topocoll::Setting)]) -> anyhow::Result<()> {
    if rest.is_empty() {
        return Ok(());
    }
    let parameters = Parameters::from_iter(rest.iter().cloned());
    Err(Settings::from_parameters(&parameters).expect_err("bug: a name no model has").into())
}

/// Checks that a request uses the order of a machine file, if it has one.
pub(super) fn check_order(machine: &Machine, all_to_all: bool) -> anyhow::Result<()> {
    let order = machine.endpoint.order;
    anyhow::ensure!(
        all_to_all || order == Order::Schedule,
        "endpoint.order = \"{order}\" of {} is only for {ORDER}",
        machine.name
    );
    Ok(())
}

/// The model's settings and the algorithm's parameters; those of endpoints go to the machine. A name that
/// a model or an endpoint has belongs to it, any other to the algorithm.
pub(super) fn split(
    machine: &mut Machine,
    model: Model,
    set: &[(String, topocoll::Setting)],
    all_to_all: bool,
) -> anyhow::Result<(Settings, Vec<(String, topocoll::Setting)>)> {
    let ours = |(name, _): &(String, _)| {
        model != Model::Steps && (Settings::knows(name) || Endpoint::knows(name))
    };
    let (ours, rest): (Vec<_>, Vec<_>) = set.iter().cloned().partition(ours);
    let mut given = BTreeMap::new();
    for (name, value) in ours {
        anyhow::ensure!(
            given.insert(name.clone(), value).is_none(),
            "parameter `{name}` is set twice"
        );
    }
    let (endpoint, given): (BTreeMap<_, _>, BTreeMap<_, _>) =
        given.into_iter().partition(|(name, _)| Endpoint::knows(name));
    for (name, value) in endpoint {
        let set = machine.endpoint.set(&name, &value.to_string());
        set.map_err(|message| anyhow::anyhow!("--set {message}"))?;
    }
    if model != Model::Steps {
        check_order(machine, all_to_all)?;
    }
    let settings = Settings::from_parameters(&given).map_err(topocoll::Error::from)?;
    Ok((settings, rest))
}

/// The messages that a command line asks for.
pub(super) fn messages(
    machine: &mut Machine,
    args: &args::Simulate,
    rest: Vec<(String, topocoll::Setting)>,
) -> anyhow::Result<Messages> {
    let options = &args.common.options;
    if let Some(pattern) = &args.traffic {
        if pattern == ALL_TO_ALL {
            set_ports_of_all(machine, args);
        }
        return Ok(Messages::Pattern(pattern.clone()));
    }
    if args.placement.is_none() {
        anyhow::ensure!(
            args.schedule.len() < 2,
            "{} schedules at once require --placement FILE with the nodes of their ranks",
            args.schedule.len()
        );
        let subject = args::Subject {
            algorithm: args.algorithm.clone(),
            set: rest,
            schedule: args.schedule.first().cloned(),
        };
        let (found, sizes) =
            on_ranks(machine, args, &subject).map_err(|e| name_both(e, args.model))?;
        return Ok(Messages::Schedule(Box::new((found, sizes))));
    }
    let mut schedules = Vec::new();
    for path in &args.schedule {
        let shown = path.display();
        let topology = jsonl::read_topology(&mut open(path)?).map_err(topocoll::Error::from);
        let topology = topology.with_context(|| {
            format!(
                "{shown}: --placement requires a format that states the exchange, such as jsonl"
            )
        })?;
        schedules.push(read_schedule(machine, options, path, &*topology)?);
    }
    if schedules.is_empty() {
        let subject =
            args::Subject { algorithm: args.algorithm.clone(), set: rest, schedule: None };
        let exchange = exchange(machine, options, &args::Part::WHOLE)?;
        let schedule = written(&exchange, &subject);
        schedules.push(schedule.map_err(|e| name_both(e, args.model))?.schedule);
    } else {
        let most = |of: fn(&Problem) -> u32| schedules.iter().map(|s| of(&s.problem)).max();
        let rank = most(|problem| problem.ports).unwrap_or(1);
        let node = most(|problem| problem.node_ports).unwrap_or(1);
        machine.set_ports(Ports { rank, node });
    }
    let path = args.placement.as_ref().expect("bug: no placement");
    check_fits("the nodes of a machine", machine.ranks(), NODE).context("--placement")?;
    let mut nodes = nodes_of(path)?;
    let ranks: usize = schedules.iter().map(|schedule| schedule.problem.ranks as usize).sum();
    anyhow::ensure!(
        nodes.len() == ranks,
        "`{}` names {} nodes, but there are {ranks} ranks",
        path.display(),
        nodes.len()
    );
    let jobs = schedules.into_iter().map(|schedule| {
        let rest = nodes.split_off(schedule.problem.ranks as usize);
        Job { schedule, nodes: std::mem::replace(&mut nodes, rest) }
    });
    Ok(Messages::Jobs(jobs.collect()))
}

/// The nodes of ranks that a file lists.
fn nodes_of(path: &Path) -> anyhow::Result<Vec<Rank>> {
    let text = read_text(path, LARGEST_PLACEMENT, "placements")?;
    read_nodes(&text).map_err(|why| anyhow::anyhow!("`{}`: {why}", path.display()))
}

/// The machine with its ranks on the nodes of a file.
pub(super) fn placed(machine: Machine, placing: &args::Placing) -> anyhow::Result<Machine> {
    let Some(path) = &placing.placement else { return Ok(machine) };
    let placed = with_placement(&machine, &nodes_of(path)?);
    placed.map_err(topocoll::Error::ShortForm).context("--placement")
}

/// The schedule of all ranks, or of the named subset on its ranks of the machine.
fn on_ranks(
    machine: &mut Machine,
    args: &args::Simulate,
    subject: &args::Subject,
) -> anyhow::Result<(Named, Option<Sized>)> {
    let options = &args.common.options;
    let exchange = exchange(machine, options, &args.part)?;
    let mut own = exchange.machine().clone();
    let (Named { schedule, name }, sizes) =
        schedule_of_sizes(&exchange, &mut own, options, subject, &args.sizes)?;
    let schedule = exchange.placed(&schedule)?.into_owned();
    let sized = match (sizes, &args.sizes.demand) {
        (Some(sizes), Some(given)) => {
            let placed = exchange.demand(&sizes.demand)?.placed_demand().map(Cow::into_owned);
            let demand = placed.expect("bug: no demand");
            Some(Sized { demand, name: sizes.name, given: given.clone() })
        }
        _ => None,
    };
    if subject.schedule.is_some() {
        machine.set_ports(own.ports);
    }
    Ok((Named { schedule, name }, sized))
}

/// All messages at once are limited by links alone; only the routers of the flit model have ports.
fn set_ports_of_all(machine: &mut Machine, args: &args::Simulate) {
    match args.model {
        Model::Flit if args.common.options.ports.is_none() && machine.source("ports").is_none() => {
            machine.set_ports(u32::try_from(machine.topology.most_links_out()).unwrap_or(u32::MAX));
        }
        Model::Flit => {}
        Model::Steps | Model::Wormhole | Model::Fluid => machine.set_ports(Ports::ALL),
    }
}

/// Adds the parameters of the model to an error about an unknown parameter of an algorithm.
fn name_both(error: anyhow::Error, name: Model) -> anyhow::Error {
    match (error.downcast_ref(), model(name)) {
        (Some(topocoll::Error::Algorithm(NotApplicable::Parameter { .. })), Some(model)) => {
            let known: Vec<_> = MODEL_PARAMETERS.iter().map(|parameter| parameter.name).collect();
            let ends: Vec<_> = ENDPOINT_PARAMETERS.iter().map(|parameter| parameter.name).collect();
            let (model, known, ends) = (model.name, known.join(", "), ends.join(", "));
            error.context(format!("the {model} model has {known}, endpoints have {ends}, and"))
        }
        _ => error,
    }
}
