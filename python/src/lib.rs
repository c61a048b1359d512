//! The extension module of the Python package: machines, selections, sweeps and schedules as plain values and
//! NumPy arrays. The package in `python/topocoll` gives them their Python interface.
#![forbid(unsafe_code)]

mod choices;
mod listing;
mod machine;
mod plan;
mod schedule;
mod simulate;
mod watch;

use std::fmt::Display;

use pyo3::PyTypeInfo;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use topocoll::{Parameters, Setting};

create_exception!(
    topocoll,
    Error,
    PyValueError,
    "A bad request: the value, the rule and the place."
);

/// The exception of an error, with the same text.
fn refused(error: impl Display) -> PyErr {
    Error::new_err(error.to_string())
}

/// Whether pickles of both hold the same.
fn same<'py>(
    one: &Bound<'py, impl PyTypeInfo>,
    other: &Bound<'py, impl PyTypeInfo>,
) -> PyResult<bool> {
    let held = |of: &Bound<'py, PyAny>| of.call_method0("__reduce__");
    held(one.as_any())?.eq(held(other.as_any())?)
}

/// Parameters of a Python dictionary of whole numbers and words.
fn parameters(given: &Bound<'_, PyDict>) -> PyResult<Parameters> {
    let mut parameters = Parameters::new();
    for (name, value) in given {
        let setting = match value.extract() {
            Ok(number) => Setting::Integer(number),
            Err(_) => Setting::Text(value.extract()?),
        };
        parameters.insert(name.extract()?, setting);
    }
    Ok(parameters)
}

/// A Python dictionary of parameters.
fn dictionary<'py>(py: Python<'py>, parameters: &Parameters) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, value) in parameters {
        match value {
            Setting::Integer(number) => out.set_item(name, number)?,
            other => out.set_item(name, other.to_string())?,
        }
    }
    Ok(out)
}

#[pymodule]
mod _core {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "a name of Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::Error;
    #[pymodule_export]
    use super::choices::{Request, algorithms};
    #[pymodule_export]
    use super::machine::{Machine, block_bytes, shipped};
    #[pymodule_export]
    use super::plan::plan;
    #[pymodule_export]
    use super::schedule::{Schedule, read};
}
