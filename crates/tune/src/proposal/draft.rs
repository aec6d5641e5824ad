//! A plan while it is made: what is set already is left alone, a limit is only raised, and each setting comes once.

use super::{Demand, NoRoute};
use crate::buffer_numbers::mended;
use crate::catalogue::{self, Scope, Shape};
use crate::state::{HostState, Route};
use thalweg_model::since;
use thalweg_model::{ExpectedGain, PlanStep, PlannedChange, Reach, RouteTarget, Setting, TunePlan};

/// A plan under construction.
pub(super) struct Draft<'a> {
    pub(super) state: &'a HostState,
    plan: TunePlan,
    no_route: Option<NoRoute>,
}

/// How a value that is there counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Raise {
    /// It is replaced where it differs.
    Set,
    /// It is raised where it is lower.
    IfLower,
}

impl<'a> Draft<'a> {
    pub(super) fn new(state: &'a HostState, purpose: &str) -> Self {
        let plan = TunePlan {
            schema: TunePlan::SCHEMA.to_owned(),
            purpose: purpose.to_owned(),
            kernel: state.kernel.map(|(major, minor)| format!("{major}.{minor}")),
            expected: None,
            arithmetic: Vec::new(),
            changes: Vec::new(),
            enough: Vec::new(),
            warnings: Vec::new(),
        };
        Self { state, plan, no_route: None }
    }

    pub(super) fn step(&mut self, what: &str, how: String, result: String) {
        self.plan.arithmetic.push(PlanStep { what: what.to_owned(), how, result });
    }

    pub(super) fn expect(&mut self, gain: Option<ExpectedGain>) {
        self.plan.expected = gain;
    }

    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.plan.warnings.push(text.into());
    }

    /// Sets a sysctl, unless it is there already. A value of three numbers is compared by its third, and keeps the first two.
    pub(super) fn sysctl(&mut self, name: &str, to: &str, raise: Raise, why: &str, risk: &str) {
        let Some(entry) = catalogue::sysctl(name) else { return };
        if !entry.is_on(self.state.kernel)
            || entry.without_effect(self.state.kernel).is_some() && self.state.kernel.is_some()
        {
            let on = self.plan.kernel.clone().unwrap_or_default();
            self.plan.enough.push(format!("{name} is not in Linux {on}, or does nothing there"));
            return;
        }
        let now = self.state.sysctl(name).map(|line| line.value.clone());
        let known = now.clone().or_else(|| entry.default_on(self.state.kernel).map(str::to_owned));
        let mut to = to.to_owned();
        let mut why = why.to_owned();
        if entry.shape == Shape::Triple && catalogue::words(&to).len() == 1 {
            let Some([least, start, _]) = mended(entry, known.as_deref().unwrap_or_default(), self.state.kernel) else {
                return;
            };
            let begins = format!("{least} {start} ");
            if known.as_deref().is_some_and(|known| !known.starts_with(&begins)) {
                why += " The first two numbers become the kernel's default: the others do harm, as `thalweg tune show` says.";
            }
            to = begins + &to;
        }
        let last = |value: &str| entry.numbers(value).and_then(|numbers| numbers.last().copied());
        let enough = known.as_deref().is_some_and(|known| match (raise, last(known), last(&to)) {
            (Raise::IfLower, Some(now), Some(wanted)) => now >= wanted,
            _ => catalogue::same_value(entry, known, &to),
        });
        if enough {
            self.plan.enough.push(format!("{name} is {}", known.unwrap_or_default()));
            return;
        }
        let reach = if entry.scope == Scope::Host { Reach::Host } else { Reach::Namespace };
        self.push(PlannedChange {
            reach,
            setting: Setting::Sysctl(name.to_owned()),
            route: None,
            from: now,
            to,
            why,
            risk: risk.to_owned(),
        });
    }

    /// Whether an attribute of a route is set.
    pub(super) fn changes_a_route(&self) -> bool {
        self.plan.changes.iter().any(|change| change.reach == Reach::Route)
    }

    /// Says of a setting that it is left as it is.
    pub(super) fn enough(&mut self, text: String) {
        self.plan.enough.push(text);
    }

    /// Sets an attribute of the route to the demand's destination, unless it is there already.
    pub(super) fn route(&mut self, demand: &Demand, name: &str, to: &str, raise: Raise, why: &str, risk: &str) {
        let setting = Setting::Route(name.to_owned());
        if let (Some(first), Some(kernel)) = (since::first_kernel(&setting, to), self.state.kernel)
            && kernel < first
        {
            self.plan.enough.push(format!("{name} {to} is not in Linux {}.{}", kernel.0, kernel.1));
            return;
        }
        let route = self.state.route_to(&demand.to);
        // Of a host without any route none was read.
        if route.is_none() && !self.state.routes.is_empty() {
            self.no_route = Some(NoRoute(demand.to.clone()));
            return;
        }
        self.other_default(demand, route);
        let now = route.and_then(|route| route.attributes.get(name)).cloned();
        if now.is_none() && to == "0" && !self.state.routes.is_empty() {
            self.plan.enough.push(format!("{name} of the route {} is not set", demand.to));
            return;
        }
        let number = |text: &str| text.trim_start_matches("lock ").parse::<u64>().ok();
        let enough = now.as_deref().is_some_and(|now| match (raise, number(now), number(to)) {
            (Raise::IfLower, Some(now), Some(wanted)) => now >= wanted,
            _ => now == to || now.strip_prefix("lock ") == Some(to),
        });
        if enough {
            self.plan.enough.push(format!("{name} of the route {} is {}", demand.to, now.unwrap_or_default()));
            return;
        }
        let target = route.map_or_else(
            || RouteTarget {
                to: demand.to.replace("::/0", "default"),
                ipv6: demand.to.contains(':'),
                ..RouteTarget::default()
            },
            Route::target,
        );
        self.push(PlannedChange {
            reach: Reach::Route,
            setting,
            route: Some(target),
            from: now,
            to: to.to_owned(),
            why: why.to_owned(),
            risk: risk.to_owned(),
        });
    }

    /// Says that `default` is the default route of one family, where the host has both.
    fn other_default(&mut self, demand: &Demand, route: Option<&Route>) {
        const BOTH: &str = "Connections over IPv6 take a default route of their own: --to ::/0 plans for it.";
        let both =
            demand.to == "default" && route.is_some_and(|route| !route.ipv6) && self.state.route_to("::/0").is_some();
        if both && !self.plan.warnings.iter().any(|warning| warning == BOTH) {
            self.warn(BOTH);
        }
    }

    /// Advises a socket option, which the program has to set.
    pub(super) fn socket(&mut self, name: &str, to: &str, why: &str, risk: &str) {
        self.push(PlannedChange {
            reach: Reach::Socket,
            setting: Setting::Socket(name.to_owned()),
            route: None,
            from: None,
            to: to.to_owned(),
            why: why.to_owned(),
            risk: risk.to_owned(),
        });
    }

    /// Adds a change; of two for one setting the larger limit stays.
    pub(super) fn push(&mut self, change: PlannedChange) {
        let same = |other: &&mut PlannedChange| other.setting == change.setting && other.route == change.route;
        match self.plan.changes.iter_mut().find(same) {
            Some(other) if last_number(&change.to) > last_number(&other.to) => *other = change,
            Some(_) => {}
            None => self.plan.changes.push(change),
        }
    }

    /// The plan.
    ///
    /// # Errors
    /// When it has attributes for a route that the host does not have.
    pub(super) fn finish(mut self) -> Result<TunePlan, NoRoute> {
        self.plan.changes.sort_by_key(|change| change.reach);
        if self.plan.changes.is_empty() {
            // What is there already has gained what it can.
            self.plan.expected = None;
        }
        self.no_route.map_or(Ok(self.plan), Err)
    }
}

fn last_number(value: &str) -> u64 {
    value.split_whitespace().next_back().and_then(|word| word.parse().ok()).unwrap_or(0)
}
