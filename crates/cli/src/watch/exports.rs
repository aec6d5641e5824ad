//! Where metrics go after each refresh: to whoever asks, and to a collector.

use super::{Exporter, OtlpExporter, Source};
use crate::output::Output;

/// The exports that were asked for.
#[derive(Default)]
pub(crate) struct Exports {
    pub(crate) prometheus: Option<Exporter>,
    pub(crate) otlp: Option<OtlpExporter>,
}

impl Exports {
    /// Whether there is any.
    pub(crate) const fn is_any(&self) -> bool {
        self.prometheus.is_some() || self.otlp.is_some()
    }

    /// Says where metrics are.
    pub(crate) fn announce(&self, output: &Output) {
        if let Some(exporter) = &self.prometheus {
            output.note(&format!("metrics at http://{}/metrics; Ctrl-C ends it", exporter.address()));
        }
        if let Some(exporter) = &self.otlp {
            output.note(&format!("metrics go to {}; Ctrl-C ends it", exporter.target()));
        }
    }

    /// Takes what was counted so far.
    pub(crate) fn publish(&self, source: &mut Source) {
        if let Some(exporter) = &self.prometheus {
            exporter.publish(source.exposition());
        }
        if let Some(exporter) = &self.otlp {
            exporter.publish(source.otlp_request(exporter.resource()));
            source.note(exporter.trouble());
        }
    }

    /// Says once what hinders an export.
    pub(crate) fn say(&self, output: &Output) {
        if let Some(news) = self.otlp.as_ref().and_then(OtlpExporter::news) {
            output.note(&format!("{news}; each refresh tries again"));
        }
    }

    /// Waits, but not for long, until the last metrics are exported.
    pub(crate) fn finish(&self, output: &Output) {
        if let Some(exporter) = &self.otlp {
            exporter.finish();
            self.say(output);
        }
    }
}
