//! Matchings of a demand matrix.

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use topocoll::{Matchings, Rank};

use crate::machine::Machine;
use crate::refused;

/// The receiver of each rank in each matching that has bytes, or -1; the largest message of each; and the fewest
/// matchings and bytes.
#[pyfunction]
#[expect(clippy::type_complexity, clippy::needless_pass_by_value, reason = "a function of Python")]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    machine: &Machine,
    sizes: PyReadonlyArray2<'py, u64>,
    startup: Option<u64>,
) -> PyResult<(Bound<'py, PyArray2<i32>>, (u64, u128), (u64, u128))> {
    let startup = startup.unwrap_or_else(|| machine.own.startup_bytes());
    let topology = machine.own.topology.clone();
    let ranks = topology.ranks();
    let (rows, columns) = (sizes.shape()[0], sizes.shape()[1]);
    if [rows, columns] != [ranks as usize; 2] {
        return Err(refused(format!(
            "matrix has {rows} rows of {columns} sizes: {ranks} ranks have {ranks} rows of {ranks}"
        )));
    }
    let sizes = sizes.as_slice().map_err(refused)?;
    let planned = py.detach(|| -> Result<_, String> {
        let mut plan = Matchings::new(&*topology, 1).map_err(|reason| reason.to_string())?;
        plan.plan(sizes, startup).map_err(|reason| reason.to_string())?;
        let moving = plan.cost().0 as usize;
        let mut to = vec![-1; moving * rows];
        for rank in 0..rows {
            for (step, Rank(other)) in plan.sends(Rank(rank as u32)) {
                if sizes[rank * rows + other as usize] > 0 {
                    to[step as usize * rows + rank] = other as i32;
                }
            }
        }
        Ok((to, [moving, rows], plan.cost(), plan.least()))
    });
    let (to, shape, cost, least) =
        planned.map_err(|reason| refused(format!("matrix: {reason}")))?;
    Ok((to.into_pyarray(py).reshape(shape)?, cost, least))
}
