//! Names of fields get slots, and what is made of them is compiled.

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, InTarget,
    ObjectName, UnaryOperator, Value as Literal,
};

use ftlab_core::error::nearest;
use ftlab_core::{Error, Result};

use crate::expression::{Comparison, EXACT, Expression, Operator, Texts};
use crate::record::{Explode, Form, Pick};

use super::{Question, numbers, unsupported, whole};

/// The fields of some files.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    pub form: &'a Form,
    pub columns: &'a [String],
    /// Numbers of those that are no values, and are refused.
    pub refused: &'a [usize],
}

/// What names of fields mean. Names are those of any case where none is written so, but for fields of JSON lines, which are not known.
pub(super) struct Scope<'a> {
    pub(super) question: &'a Question,
    pub(super) own: Fields<'a>,
    pub(super) joined: Option<Fields<'a>>,
    pub(super) picks: Vec<Pick>,
    pub(super) joined_picks: Vec<Pick>,
}

/// A field of which side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Sampled,
    Joined,
}

impl Scope<'_> {
    /// Which sides the fields of an expression are of.
    pub(super) fn sides(&self, expr: &Expr) -> Result<Vec<Side>> {
        match expr {
            Expr::Identifier(name) => Ok(vec![self.find(None, &[name])?.0]),
            Expr::CompoundIdentifier(names) => {
                let names: Vec<&Ident> = names.iter().collect();
                Ok(vec![self.find(Some(&names[0].value), &names)?.0])
            }
            Expr::Nested(inside) => self.sides(inside),
            _ => Err(Error::input(format!("on {expr}: expected a field"))),
        }
    }

    /// The side and pick of a name; `first` is what may be another name of a file.
    fn find(&self, first: Option<&String>, names: &[&Ident]) -> Result<(Side, Pick)> {
        let join = self.question.join.as_ref();
        let aliases = [&self.question.alias, join.map_or(&None, |join| &join.alias)].map(Option::as_deref);
        let alias = first.and_then(|first| place_of(aliases.iter().map(|alias| alias.unwrap_or_default()), first));
        let (sides, names): (&[Side], &[&Ident]) = match alias {
            Some(0) => (&[Side::Sampled], &names[1..]),
            Some(_) => (&[Side::Joined], &names[1..]),
            _ if join.is_some() => (&[Side::Sampled, Side::Joined], names),
            _ => (&[Side::Sampled], names),
        };
        let path: Vec<String> = names.iter().map(|name| name.value.clone()).collect();
        let mut known: Vec<&str> = Vec::new();
        let mut found = Vec::new();
        let name = path.join(".");
        let mut is_refused = false;
        for &side in sides {
            let Fields { form, columns, refused } = match (side, self.joined) {
                (Side::Joined, Some(joined)) => joined,
                _ => self.own,
            };
            let explode = self.question.explode.filter(|_| side == Side::Sampled);
            match (form, explode) {
                (Form::Json, _) => found.push((side, Pick::Path(path.clone()))),
                (Form::Text, explode) => {
                    let column = explode.map_or("line", Explode::column);
                    known.push(column);
                    if path.len() == 1 && path[0].eq_ignore_ascii_case(column) {
                        found.push((side, Pick::Line));
                    }
                }
                (Form::Csv { .. } | Form::Parquet, _) => {
                    let inside = format!("{name}.");
                    let is_it = |&at: &usize| columns[at] == name || columns[at].starts_with(&inside);
                    is_refused |= refused.iter().any(is_it);
                    let usable = columns.iter().enumerate().filter(|(at, _)| !refused.contains(at));
                    known.extend(usable.map(|(_, column)| &column[..]));
                    let places = |is_it: &dyn Fn(&str) -> bool| -> Vec<usize> {
                        (0..columns.len()).filter(|&at| is_it(&columns[at])).collect()
                    };
                    let mut places_of_name = places(&|column| column == name);
                    if places_of_name.is_empty() {
                        places_of_name = places(&|column| column.eq_ignore_ascii_case(&name));
                    }
                    if let [first, second, ..] = places_of_name[..] {
                        return Err(Error::input(format!(
                            "field `{name}`: columns {} and {} are called so, expected one",
                            first + 1,
                            second + 1
                        )));
                    }
                    found.extend(places_of_name.first().map(|&at| (side, Pick::Field(at))));
                }
            }
        }
        // Objects may have any field, so that a name that the other file's header has is meant there.
        if found.iter().any(|(_, pick)| !matches!(pick, Pick::Path(_))) {
            found.retain(|(_, pick)| !matches!(pick, Pick::Path(_)));
        }
        match &found[..] {
            [one] => Ok(one.clone()),
            [] if is_refused => Err(Error::input(format!(
                "field `{name}`: of lists, maps or other kinds, expected one of numbers, texts, truths, dates or times"
            ))),
            [] => {
                let hint = nearest(&name, known.iter().copied())
                    .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                Err(Error::input(format!(
                    "unknown field `{name}`{hint} (known: {})",
                    known.join(", ")
                )))
            }
            _ => Err(Error::input(format!(
                "field `{name}`: both files have one; expected ALIAS.{name}"
            ))),
        }
    }

    /// Whether a file has a column of this name, as far as it tells: objects may have any field.
    pub(super) fn has_column(&self, name: &Ident) -> bool {
        matches!(self.find(None, &[name]), Ok((_, Pick::Field(_) | Pick::Line)))
    }

    fn slot(&mut self, first: Option<&String>, names: &[&Ident]) -> Result<Expression> {
        let (side, pick) = self.find(first, names)?;
        let picks = match side {
            Side::Sampled => &mut self.picks,
            Side::Joined => &mut self.joined_picks,
        };
        let at = picks.iter().position(|known| *known == pick).unwrap_or_else(|| {
            picks.push(pick);
            picks.len() - 1
        });
        // Slots of the joined file stand behind those of the sampled ones.
        let before = if side == Side::Joined { self.picks.len() } else { 0 };
        Ok(Expression::Slot(before + at))
    }

    pub(super) fn compile(&mut self, expr: &Expr) -> Result<Expression> {
        let boxed = |expression: Expression| Box::new(expression);
        Ok(match expr {
            Expr::Identifier(name) => self.slot(None, &[name])?,
            Expr::CompoundIdentifier(names) => {
                let names: Vec<&Ident> = names.iter().collect();
                self.slot(Some(&names[0].value), &names)?
            }
            Expr::Nested(inside) => self.compile(inside)?,
            Expr::Value(value) => match &value.value {
                Literal::Number(text, _) => match text.parse::<i128>() {
                    Ok(whole) if whole.unsigned_abs() > EXACT => Expression::Whole(whole),
                    _ => Expression::Number(
                        text.parse()
                            .map_err(|_| Error::input(format!("`{text}`: expected a number")))?,
                    ),
                },
                Literal::SingleQuotedString(text) => Expression::Text(text.clone().into_bytes()),
                Literal::Boolean(truth) => Expression::Bool(*truth),
                Literal::Null => Expression::Null,
                _ => return Err(unsupported(expr)),
            },
            Expr::UnaryOp { op, expr: inside } => {
                let inside = boxed(self.compile(inside)?);
                match op {
                    UnaryOperator::Not => Expression::Not(inside),
                    UnaryOperator::Minus => match *inside {
                        Expression::Whole(number) => Expression::Whole(-number),
                        inside => {
                            Expression::Compute(Operator::Subtract, boxed(Expression::Number(0.0)), boxed(inside))
                        }
                    },
                    UnaryOperator::Plus => *inside,
                    _ => return Err(unsupported(expr)),
                }
            }
            Expr::BinaryOp { left, op, right } => {
                let (left, right) = (self.compile(left)?, self.compile(right)?);
                let compare = |how, left, right| self.compare(how, left, right);
                let compute = |how, left, right| Expression::Compute(how, boxed(left), boxed(right));
                match op {
                    BinaryOperator::And => Expression::And(boxed(left), boxed(right)),
                    BinaryOperator::Or => Expression::Or(boxed(left), boxed(right)),
                    BinaryOperator::Eq => compare(Comparison::Equal, left, right),
                    BinaryOperator::NotEq => compare(Comparison::Unequal, left, right),
                    BinaryOperator::Lt => compare(Comparison::Less, left, right),
                    BinaryOperator::LtEq => compare(Comparison::LessOrEqual, left, right),
                    BinaryOperator::Gt => compare(Comparison::Greater, left, right),
                    BinaryOperator::GtEq => compare(Comparison::GreaterOrEqual, left, right),
                    BinaryOperator::Plus => compute(Operator::Add, left, right),
                    BinaryOperator::Minus => compute(Operator::Subtract, left, right),
                    BinaryOperator::Multiply => compute(Operator::Multiply, left, right),
                    BinaryOperator::Divide => compute(Operator::Divide, left, right),
                    BinaryOperator::Modulo => compute(Operator::Remainder, left, right),
                    _ => return Err(unsupported(expr)),
                }
            }
            Expr::IsNull(inside) => Expression::IsNull(boxed(self.compile(inside)?)),
            Expr::IsNotNull(inside) => Expression::Not(boxed(Expression::IsNull(boxed(self.compile(inside)?)))),
            Expr::IsTrue(inside) => self.compile(inside)?,
            Expr::In {
                expr,
                target: InTarget::List(list),
                negated,
                global: false,
            } => {
                let it = self.compile(expr)?;
                let mut any = Expression::Bool(false);
                for one in list {
                    let one = self.compile(one)?;
                    let equal = self.compare(Comparison::Equal, it.clone(), one);
                    any = Expression::Or(boxed(any), boxed(equal));
                }
                negate(any, *negated)
            }
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let it = self.compile(expr)?;
                let (low, high) = (self.compile(low)?, self.compile(high)?);
                let low = self.compare(Comparison::GreaterOrEqual, it.clone(), low);
                let high = self.compare(Comparison::LessOrEqual, it, high);
                negate(Expression::And(boxed(low), boxed(high)), *negated)
            }
            Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char: None,
            } => {
                let Expression::Text(pattern) = self.compile(pattern)? else {
                    return Err(Error::input(format!("like {pattern}: expected a text in quotes")));
                };
                negate(Expression::Like(boxed(self.compile(expr)?), pattern), *negated)
            }
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr: inside,
                data_type,
                format: None,
            } => match data_type {
                DataType::Double(_) | DataType::DoublePrecision | DataType::Float(_) | DataType::Real => {
                    Expression::AsNumber(boxed(self.compile(inside)?))
                }
                _ => return Err(Error::input(format!("`{expr}`: expected `as double`"))),
            },
            Expr::Substring {
                expr,
                substring_from: Some(from),
                substring_for,
                ..
            } => Expression::Substring(
                boxed(self.compile(expr)?),
                boxed(self.compile(from)?),
                match substring_for {
                    Some(count) => Some(boxed(self.compile(count)?)),
                    None => None,
                },
            ),
            Expr::Function(function) => {
                if !numbers::within(expr)?.is_empty() {
                    return Err(Error::input(format!(
                        "`{expr}`: expected as an item of its own, not within an expression"
                    )));
                }
                let arguments = arguments(&function.args).ok_or_else(|| unsupported(expr))?;
                self.function(&function.name, &arguments, expr)?
            }
            _ => return Err(unsupported(expr)),
        })
    }

    fn compare(&self, how: Comparison, left: Expression, right: Expression) -> Expression {
        let texts = match (self.is_untyped(&left), self.is_untyped(&right)) {
            (true, true) => Texts::Untyped,
            (true, false) if right.is_truth() => Texts::Untyped,
            (false, true) if left.is_truth() => Texts::Untyped,
            _ => Texts::Texts,
        };
        Expression::Compare(how, texts, Box::new(left), Box::new(right))
    }

    /// Whether it is a field, or a piece of one, of a format that has no types.
    fn is_untyped(&self, expression: &Expression) -> bool {
        match expression {
            Expression::Slot(slot) => {
                let form = match self.joined {
                    Some(joined) if *slot >= self.picks.len() => joined.form,
                    _ => self.own.form,
                };
                matches!(form, Form::Text | Form::Csv { .. })
            }
            Expression::Field(inside, _) => self.is_untyped(inside),
            _ => false,
        }
    }

    fn function(&mut self, name: &ObjectName, arguments: &[&Expr], whole_call: &Expr) -> Result<Expression> {
        let name = name.to_string().to_ascii_lowercase();
        Ok(match (name.as_str(), arguments) {
            ("lower", [of]) => Expression::Lower(Box::new(self.compile(of)?)),
            ("upper", [of]) => Expression::Upper(Box::new(self.compile(of)?)),
            ("length", [of]) => Expression::Length(Box::new(self.compile(of)?)),
            ("field", [of, number]) => match whole(number, "field")? {
                0 => return Err(Error::input(format!("`{whole_call}`: expected a number from 1 on"))),
                number => Expression::Field(Box::new(self.compile(of)?), number),
            },
            ("lower" | "upper" | "length" | "field", _) => {
                return Err(Error::input(format!(
                    "`{whole_call}`: {} arguments, expected {}",
                    arguments.len(),
                    if name == "field" { 2 } else { 1 }
                )));
            }
            _ => {
                let known = [
                    "count",
                    "sum",
                    "avg",
                    "proportion",
                    "median",
                    "quantile",
                    "lower",
                    "upper",
                    "length",
                    "substr",
                    "field",
                    "cast",
                ];
                return Err(ftlab_core::error::unknown("function", &name, &known));
            }
        })
    }
}

/// Where a name stands, else one that is alike but for case.
pub(super) fn place_of<'n>(mut names: impl Iterator<Item = &'n str> + Clone, name: &str) -> Option<usize> {
    let exact = names.clone().position(|known| known == name);
    exact.or_else(|| names.position(|known| known.eq_ignore_ascii_case(name)))
}

fn arguments(arguments: &FunctionArguments) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = arguments else {
        return None;
    };
    let plain = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().map(plain).collect()
}

fn negate(expression: Expression, negated: bool) -> Expression {
    if negated {
        Expression::Not(Box::new(expression))
    } else {
        expression
    }
}
