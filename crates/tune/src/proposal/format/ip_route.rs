//! Commands of `ip route`. Source: ip-route(8).

use super::{by_route, header};
use crate::route_command;
use thalweg_model::{PlannedChange, TunePlan};

pub(super) fn write(plan: &TunePlan, changes: &[&PlannedChange]) -> String {
    let mut text = header(plan);
    text += "# They are gone at the next boot. `ip route change` replaces the whole route, so each repeats what the route had.\n";
    for (route, attributes) in by_route(changes) {
        // What cannot be written was refused.
        if let Ok(command) = route_command::change(route, attributes.into_iter()) {
            text += &command;
            text.push('\n');
        }
    }
    text
}
