use std::sync::Arc;

use topocoll_schedule::Parameters;

use crate::parameters::nearest;
use crate::{ALGORITHMS, Algorithm, Info, NotApplicable, Parameter, removed};

/// The algorithms that a ranking considers: those of this crate, and the caller's own.
#[derive(Clone, Default)]
pub struct Catalogue {
    own: Vec<Arc<dyn Algorithm>>,
}

impl Catalogue {
    /// The algorithms of this crate.
    #[must_use]
    pub fn standard() -> Self {
        Self::default()
    }

    /// The same with another algorithm, after all others.
    ///
    /// # Errors
    /// An algorithm of this name exists already.
    pub fn with(mut self, algorithm: impl Algorithm + 'static) -> Result<Self, NotApplicable> {
        let name = &algorithm.info().name;
        if self.iter().any(|known| known.info().name == *name) {
            return Err(NotApplicable::Duplicate { name: name.clone().into_owned() });
        }
        self.own.push(Arc::new(algorithm));
        Ok(self)
    }

    /// All algorithms, in the order in which lists show them.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Algorithm> {
        ALGORITHMS.iter().copied().chain(self.own.iter().map(|own| &**own))
    }

    /// The algorithm called `name`.
    ///
    /// # Errors
    /// No algorithm has that name; the error suggests the nearest one.
    pub fn find(&self, name: &str) -> Result<&dyn Algorithm, NotApplicable> {
        self.iter().find(|algorithm| algorithm.info().name == name).ok_or_else(|| {
            removed::algorithm(name).unwrap_or_else(|| {
                let names = self.iter().map(|algorithm| &*algorithm.info().name);
                let nearest = nearest(name, names).map(str::to_owned);
                NotApplicable::Unknown { name: name.to_owned(), nearest }
            })
        })
    }

    /// The caller's own algorithms.
    pub fn own(&self) -> impl Iterator<Item = &Info> {
        self.own.iter().map(|own| own.info())
    }

    /// Whether an algorithm of this name is the caller's.
    #[must_use]
    pub fn is_own(&self, name: &str) -> bool {
        self.own().any(|own| own.name == name)
    }

    /// The parameter of an algorithm that `key` sets. If another parameter names an algorithm in
    /// `setting`, `name.key` sets one of that algorithm's.
    #[must_use]
    pub fn parameter(
        &self,
        algorithm: &str,
        setting: &Parameters,
        key: &str,
    ) -> Option<&'static Parameter> {
        Some(self.owner(algorithm, setting, key)?.1)
    }

    /// Whether `key` sets an internal parameter of an algorithm, or of one that another parameter names.
    #[must_use]
    pub fn is_internal(&self, algorithm: &str, setting: &Parameters, key: &str) -> bool {
        let owner = self.owner(algorithm, setting, key);
        owner.is_some_and(|(info, parameter)| info.internal.contains(parameter))
    }

    /// The algorithm that has the parameter that `key` sets.
    fn owner(
        &self,
        algorithm: &str,
        setting: &Parameters,
        key: &str,
    ) -> Option<(&Info, &'static Parameter)> {
        let info = self.find(algorithm).ok()?.info();
        match info.parameter(key)? {
            (parameter, None) => Some((info, parameter)),
            (parameter, Some(own)) => {
                let named = setting.get(parameter.name)?.to_string();
                let info = self.find(&named).ok()?.info();
                Some((info, info.parameter(own)?.0))
            }
        }
    }
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|algorithm| &algorithm.info().name)).finish()
    }
}
