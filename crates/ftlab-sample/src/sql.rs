//! The part of SQL that is answered.
//!
//! # Model
//! ```text
//! select ITEM, ... from 'FILES' [alias] [join 'FILE' [alias] on FIELD = FIELD]
//!   [where CONDITION] [group by EXPRESSION, ...] [order by ITEM [desc], ...] [limit N]
//! ```
//! An item is an expression that is grouped by, `count(*)`, `count(X)`, `sum(X)`, `avg(X)` or `proportion(CONDITION)`, what is made of those by `+ - * /`, `sqrt`, `ln` and `exp`,
//! `median(X)` or `quantile(X, P)`, each with or without `as NAME`. `from words('FILES')` makes a row of each word of a line (`word`), `from links('FILES')` of each `[[link]]`
//! (`target`). `ldd('NAME')` in the place of 'FILES' is a stored LDD. Expressions have fields, numbers, texts, `+ - * / %`, comparisons, `and or not`, `in`,
//! `between`, `like`, `is null`, `lower`, `upper`, `length`, `substr(X, FROM, COUNT)`, `field(X, N)` (the n-th piece between white space) and
//! `cast(X as double)`. The file of `join` is read whole; each of its rows with the same value makes a row.
//!
//! # Not modelled
//! Everything else of SQL: subqueries, windows, `having`, `distinct`, outer joins.
//!
//! # Errors
//! What does not parse, with line and column; what is not among the above, by name.

mod binding;
mod numbers;
mod question;
mod scope;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sqlparser::ast::Expr;

use ftlab_core::{Error, Result};

use crate::expression::Expression;
use crate::formula::Formula;
use crate::record::{Explode, Pick};

pub use binding::bind;
pub use question::{LONGEST_QUERY, parse};
pub use scope::Fields;

/// A parsed question, before the fields of its files are known.
#[derive(Debug)]
pub struct Question {
    pub files: Files,
    pub explode: Option<Explode>,
    alias: Option<String>,
    pub join: Option<Join>,
    items: Vec<(Expr, Option<String>)>,
    condition: Option<Expr>,
    groups: Vec<Expr>,
    orders: Vec<(Expr, bool)>,
    pub limit: Option<usize>,
}

/// Where records come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// A file or pattern.
    Pattern(String),
    /// The folder of a stored LDD.
    Stored(String),
}

impl std::fmt::Display for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Files::Pattern(pattern) => f.write_str(pattern),
            Files::Stored(name) => write!(f, "ldd('{name}')"),
        }
    }
}

#[derive(Debug)]
pub struct Join {
    pub file: String,
    alias: Option<String>,
    left: Expr,
    right: Expr,
}

/// A question whose fields have places.
#[derive(Debug)]
pub struct Plan {
    /// What is taken from a record of the sampled files; slot by slot.
    pub picks: Vec<Pick>,
    /// Slots behind the picks that hold fields of the joined file: their numbers in it.
    pub joined: Vec<Pick>,
    /// What a record and a row of the joined file have alike.
    pub keys: Option<(Expression, Expression)>,
    pub condition: Option<Expression>,
    pub groups: Vec<Expression>,
    pub aggregates: Vec<Aggregate>,
    /// Made of aggregates, some of which no column shows.
    pub formulas: Vec<Formula>,
    pub quantiles: Vec<Quantile>,
    pub columns: Vec<Column>,
    /// Columns that rows are sorted by, and whether from the largest on.
    pub orders: Vec<(usize, bool)>,
    pub limit: Option<usize>,
    /// What is grouped by as floats of 32 bits, once files have told.
    pub singles: Vec<usize>,
}

impl Plan {
    /// Refuses columns of which one would be lost in a table with a name for each number.
    pub fn refuse_twice(&self) -> Result<()> {
        let mut names = BTreeSet::from(["partitions_seen".to_owned(), "is_reliable".to_owned()]);
        for Column { name, shows } in &self.columns {
            let ends: &[&str] = match shows {
                Shows::Group(_) => &[""],
                _ => &["", " low", " high"],
            };
            let mut all = ends.iter().map(|end| format!("{name}{end}"));
            if let Some(twice) = all.find(|name| !names.insert(name.clone())) {
                return Err(Error::input(format!(
                    "two columns of the answer have the name `{twice}`: expected another (`as NAME`)"
                )));
            }
        }
        Ok(())
    }

    /// Numbers of the aggregates that count each row, where nothing leaves one out or makes more of it.
    fn counts_of_rows(&self) -> Vec<usize> {
        if self.condition.is_some() || !self.groups.is_empty() || self.keys.is_some() {
            return Vec::new();
        }
        let all = self.aggregates.iter().enumerate();
        all.filter(|(_, aggregate)| aggregate.of.is_none())
            .map(|(at, _)| at)
            .collect()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub kind: Kind,
    /// None of `count(*)`.
    pub of: Option<Expression>,
}

/// The value that a share `p` of all do not exceed.
#[derive(Debug, Clone)]
pub struct Quantile {
    pub of: Expression,
    pub p: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Count,
    Sum,
    #[serde(rename = "avg")]
    Average,
    Proportion,
}

impl Kind {
    /// Whether it is the ratio of two totals.
    pub fn is_ratio(self) -> bool {
        matches!(self, Kind::Average | Kind::Proportion)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Count => "count",
            Kind::Sum => "sum",
            Kind::Average => "avg",
            Kind::Proportion => "proportion",
        }
    }
}

/// What a column of the answer shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub shows: Shows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shows {
    Group(usize),
    Aggregate(usize),
    Formula(usize),
    Quantile(usize),
}

/// What of a plan is needed to make an answer of sums, also where its files are not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// How many expressions are grouped by.
    pub groups: usize,
    pub kinds: Vec<Kind>,
    /// Made of aggregates, some of which no column shows.
    pub formulas: Vec<Formula>,
    pub columns: Vec<Column>,
    /// Columns that rows are sorted by, and whether from the largest on.
    pub orders: Vec<(usize, bool)>,
    pub limit: Option<usize>,
    /// Aggregates that count each row of the files, whose number may be known.
    pub rows: Vec<usize>,
    /// What is grouped by as floats of 32 bits, which have fewer digits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub singles: Vec<usize>,
}

impl Select {
    pub fn of(plan: &Plan) -> Select {
        Select {
            groups: plan.groups.len(),
            kinds: plan.aggregates.iter().map(|aggregate| aggregate.kind).collect(),
            formulas: plan.formulas.clone(),
            columns: plan.columns.clone(),
            orders: plan.orders.clone(),
            limit: plan.limit,
            rows: plan.counts_of_rows(),
            singles: plan.singles.clone(),
        }
    }

    /// Pairs of aggregates that stand in one formula, smaller number first.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let mut pairs = BTreeSet::new();
        for formula in &self.formulas {
            let totals: Vec<usize> = formula.totals().into_iter().collect();
            for (at, &a) in totals.iter().enumerate() {
                pairs.extend(totals[at + 1..].iter().map(|&b| (a, b)));
            }
        }
        pairs.into_iter().collect()
    }

    /// How many of `rows` rows are shown.
    pub fn shown(&self, rows: usize) -> usize {
        self.limit.unwrap_or(usize::MAX).min(rows)
    }
}

fn unsupported(what: impl std::fmt::Display) -> Error {
    Error::input(format!(
        "`{what}`: not among what is sampled; expected select ... from 'FILES' [join 'FILE' on a = b] [where ...] [group by ...] [order by ...] [limit N]"
    ))
}

fn whole(expr: &Expr, what: &str) -> Result<usize> {
    expr.to_string()
        .parse()
        .map_err(|_| Error::input(format!("{what} {expr}: expected a whole number")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Form;

    fn columns() -> Vec<String> {
        ["ms", "country", "code"].map(String::from).to_vec()
    }

    fn plan(text: &str) -> Result<Plan> {
        let own = Fields {
            form: &Form::parse("csv", None)?,
            columns: &columns(),
            refused: &[],
        };
        bind(&parse(text)?, own, None)
    }

    #[test]
    fn the_question_of_the_guide() {
        let plan = plan("select country, avg(ms) as mean, count(*) from 'logs/*.csv' where ms > 1 group by country order by 3 desc limit 5").unwrap();
        assert_eq!(plan.picks, [Pick::Field(0), Pick::Field(1)]);
        assert_eq!(plan.groups, [Expression::Slot(1)]);
        let names: Vec<&str> = plan.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["country", "mean", "count(*)"]);
        assert_eq!((plan.orders, plan.limit), (vec![(2, true)], Some(5)));
    }

    #[test]
    fn what_is_not_answered_is_refused_by_name() {
        for (text, says) in [
            ("select", "query: "),
            ("select 1", "expected one file"),
            ("select country from 'a.csv'", "`country`: expected in `group by`"),
            (
                "select country from 'a.csv' group by country",
                "expected at least one of count",
            ),
            (
                "select count(distinct ms) from 'a.csv'",
                "does not tell how many are distinct",
            ),
            ("select sum(mz) from 'a.csv'", "unknown field `mz`; did you mean `ms`?"),
            ("select mode(ms) from 'a.csv'", "unknown function `mode`"),
            (
                "select count(*) from 'a.csv' having count(*) > 1",
                "`having count(*) > 1`",
            ),
            (
                "select count(*) from 'a.csv' a left join 'b.csv' b on a.ms = b.ms",
                "LEFT JOIN",
            ),
            (
                "select count(*) from 'a.csv' where sum(ms) > 1",
                "expected as an item of its own",
            ),
            (
                "select sum(ms) + code from 'a.csv'",
                "`code`: expected within count, sum, avg or proportion",
            ),
            ("select sum(ms) % 2 from 'a.csv'", "expected + - * or /"),
            ("select max(ms) from 'a.csv'", "largest that was read"),
            (
                "select count(*) + median(ms) from 'a.csv'",
                "expected as an item of its own",
            ),
            (
                "select quantile(ms, 2) from 'a.csv'",
                "expected a share between 0 and 1",
            ),
            ("select count(*) from (select 1)", "not among what is sampled"),
            (
                "select row_number() over () from 'a.csv'",
                "unknown function `row_number`",
            ),
            (
                "select count(*) from 'a.csv' order by ms",
                "expected an item of the select",
            ),
            ("delete from a", "expected one `select`"),
            (
                "select count(*) from rows('a')",
                "unknown function behind `from` `rows`",
            ),
        ] {
            let error = plan(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
