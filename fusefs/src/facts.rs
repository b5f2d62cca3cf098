//! What exists: answers from the windows of the last second, else from one read, which asks ahead for whoever walks.
//!
//! Owns the windows and the walks. A question is asked about a [`Place`] in a [`Scope`]; families are named by their ids,
//! taken from the table's schema of the last second.
//!
//! **Invariants**: a question costs one read, or two where the first was cut before it got there, besides the table's schema;
//! simultaneous questions about one row ask once.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;
use tablemount_api::TableInfo;
use tokio::sync::MutexGuard;
use tracing::trace;

use crate::clock::Clock;
use crate::errno::Failure;
use crate::fetch::Fetch;
use crate::lookahead::{Ahead, Walks};
use crate::place::{CellFact, Place};
use crate::remote::Remote;
use crate::tables::Tables;
use crate::window::{First, Scope, Window, Windows};

const STRIPES: usize = 64;
/// Rows asked for ahead at most.
const ROWS_AHEAD: u64 = 2000;
/// Columns or versions inside a row asked for ahead at most.
const CELLS_AHEAD: u64 = 10_000;
/// Values asked for ahead at most, by number and by bytes.
const VALUES_AHEAD: u64 = 4096;
const VALUE_BYTES_AHEAD: u64 = 4 << 20;

/// What is known, and how to learn more.
pub(crate) struct Facts {
    pub(crate) remote: Arc<Remote>,
    pub(crate) tables: Tables,
    pub(crate) clock: Arc<Clock>,
    windows: Mutex<Windows>,
    walks: Mutex<AllWalks>,
    stripes: Vec<tokio::sync::Mutex<()>>,
}

/// The walks over rows, over what is inside rows, and over values.
struct AllWalks {
    rows: Walks,
    inner: Walks,
    values: Walks,
}

impl AllWalks {
    /// Someone visited a place that was known.
    fn hit(&mut self, scope: &Scope, place: &Place, inside: bool, now: Instant) {
        self.rows
            .hit(scope, &Place::row(place.row.clone()), inside, now);
        if place.qualifier.is_some() {
            self.inner.hit(scope, place, true, now);
        }
    }

    /// Someone visited a place that was not known: from where on and how much to fetch.
    fn miss(&mut self, scope: &Scope, place: &Place, inside: bool, now: Instant) -> (Place, Ahead) {
        let row = Place::row(place.row.clone());
        if place.family.is_none() {
            let ahead = self.rows.miss(scope, place, inside, now);
            return (row, ahead);
        }
        self.rows.hit(scope, &row, true, now);
        match self.rows.resume(scope, &row, now) {
            Some(ahead) => (row, ahead),
            None => (place.clone(), self.inner.miss(scope, place, true, now)),
        }
    }

    /// What was fetched does not reach to `place`: how much to fetch from there on.
    fn out_of_reach(&mut self, scope: &Scope, place: &Place, now: Instant) -> Ahead {
        self.rows.got(scope, &Place::row(place.row.clone()), 1);
        match place.family {
            None => Ahead::ALONE,
            Some(_) => self.inner.miss(scope, place, true, now),
        }
    }
}

impl Facts {
    pub(crate) fn new(remote: Arc<Remote>, clock: Clock) -> Self {
        let clock = Arc::new(clock);
        Self {
            tables: Tables::new(remote.clone(), clock.clone()),
            remote,
            clock,
            windows: Mutex::default(),
            walks: Mutex::new(AllWalks {
                rows: Walks::new(ROWS_AHEAD),
                inner: Walks::new(CELLS_AHEAD),
                values: Walks::new(VALUES_AHEAD),
            }),
            stripes: (0..STRIPES)
                .map(|_| tokio::sync::Mutex::default())
                .collect(),
        }
    }

    /// Whether `place` holds anything.
    pub(crate) async fn exists(&self, scope: &Scope, place: &Place) -> Result<bool, Failure> {
        Ok(self.first(scope, place, false).await? != First::Nothing)
    }

    /// The first cell of `place`: of a column its newest version.
    pub(crate) async fn first_cell(
        &self,
        scope: &Scope,
        place: &Place,
    ) -> Result<CellFact, Failure> {
        match self.first(scope, place, true).await? {
            First::Cell(cell) => Ok(cell),
            First::Nothing | First::Something => Err(Failure::Absent),
        }
    }

    /// All cells of `place`, if they are few enough to come with the place itself; else `None`, and a listing pages on.
    pub(crate) async fn all_cells(
        &self,
        scope: &Scope,
        place: &Place,
    ) -> Result<Option<Vec<CellFact>>, Failure> {
        self.first(scope, place, true).await?;
        Ok(self.windows.lock().all_in(scope, place, self.clock.now()))
    }

    /// A listing told that these row keys, and none between them, are in the table.
    pub(crate) fn note(&self, window: Window) {
        self.windows.lock().insert(Arc::new(window));
    }

    async fn first(&self, scope: &Scope, place: &Place, inside: bool) -> Result<First, Failure> {
        if let Some(first) = self.known(scope, place, inside) {
            self.walks
                .lock()
                .hit(scope, place, inside, self.clock.now());
            return Ok(first);
        }
        let _turn = self.turn(&place.row).await;
        if let Some(first) = self.known(scope, place, inside) {
            self.walks
                .lock()
                .hit(scope, place, inside, self.clock.now());
            return Ok(first);
        }
        let info = self.tables.recent(&scope.table).await?;
        let now = self.clock.now();
        let (from, ahead) = self.walks.lock().miss(scope, place, inside, now);
        let fetch = Fetch::lengths(scope, &info, &from, ahead)?;
        let mut window = self.fetch(scope, &info, fetch).await?;
        if answer(&window, place, inside).is_none() {
            // The page was cut before it got there, or tells row keys only.
            let ahead = self.walks.lock().out_of_reach(scope, place, now);
            let fetch = Fetch::lengths(scope, &info, place, ahead)?;
            window = self.fetch(scope, &info, fetch).await?;
        }
        // Not even the first cell came: it could not be read in one page, so it is not called absent.
        answer(&window, place, inside).ok_or(Failure::Deadline)
    }

    fn known(&self, scope: &Scope, place: &Place, inside: bool) -> Option<First> {
        let now = self.clock.now();
        let mut windows = self.windows.lock();
        if inside {
            windows.first_cell_in(scope, place, now)
        } else {
            windows.first_in(scope, place, now)
        }
    }

    /// The bytes of the first cell of `place`, if they are known or come with what is asked ahead for a walker; else `None`.
    pub(crate) async fn value_ahead(
        &self,
        scope: &Scope,
        place: &Place,
    ) -> Result<Option<CellFact>, Failure> {
        if let Some(First::Cell(cell)) =
            self.windows.lock().value_in(scope, place, self.clock.now())
        {
            self.walks
                .lock()
                .values
                .hit(scope, place, true, self.clock.now());
            return Ok(Some(cell));
        }
        let _turn = self.turn(&place.row).await;
        let ahead = self
            .walks
            .lock()
            .values
            .miss(scope, place, true, self.clock.now());
        if ahead.places == 1 {
            return Ok(None);
        }
        let info = self.tables.recent(&scope.table).await?;
        let Some(lengths) = self
            .lengths_ahead(scope, &info, place, ahead.places)
            .await?
        else {
            return Ok(None);
        };
        let cells = affordable(&lengths, place, ahead.places);
        if cells < 2 {
            return Ok(None);
        }
        let fetch = Fetch::values(scope, &info, &lengths, place, cells)?;
        let window = self.fetch(scope, &info, fetch).await?;
        Ok(match window.first_in(place) {
            Some(First::Cell(cell)) if cell.value.is_some() => Some(cell),
            _ => None,
        })
    }

    /// What comes from `place` on, without values. If little or nothing of it is known, rows are asked for first, so that
    /// values and lengths come in step.
    async fn lengths_ahead(
        &self,
        scope: &Scope,
        info: &TableInfo,
        place: &Place,
        cells: u64,
    ) -> Result<Option<Arc<Window>>, Failure> {
        let now = self.clock.now();
        let row = Place::row(place.row.clone());
        let known = self.windows.lock().from(scope, place, now);
        let enough = known.as_ref().is_some_and(|known| {
            let reach = known.from(place).map_or(0, |(_, cells)| cells.len() as u64);
            let begins_here = known
                .low
                .as_ref()
                .is_some_and(|low| row.cmp_side(false, low).is_eq());
            begins_here || known.high.is_none() || reach * 2 >= cells || !known.covers_start(&row)
        });
        if enough || scope.reverse {
            return Ok(known);
        }
        let ahead = Ahead {
            places: cells.min(ROWS_AHEAD),
            inside: true,
        };
        let fetch = Fetch::lengths(scope, info, &row, ahead)?;
        self.fetch(scope, info, fetch).await.map(Some)
    }

    async fn fetch(
        &self,
        scope: &Scope,
        info: &TableInfo,
        fetch: Fetch,
    ) -> Result<Arc<Window>, Failure> {
        let fetched = self.clock.now();
        let page = self.remote.read_page(&scope.table, &fetch.request).await?;
        trace!(
            rows = page.rows.len(),
            row_limit = fetch.request.row_limit,
            cell_limit = fetch.request.cell_limit,
            content = ?fetch.request.cells,
            took = ?self.clock.now().duration_since(fetched),
            "read"
        );
        self.tables.confirm(&scope.table, fetched);
        let renewed = match fetch.is_known(info, &page) {
            true => None,
            false => Some(self.tables.ask(&scope.table).await?),
        };
        let info = renewed.as_deref().unwrap_or(info);
        let window = Arc::new(fetch.window(scope, info, page, fetched));
        self.windows.lock().insert(window.clone());
        Ok(window)
    }

    /// Waits until no one else asks about `row`.
    async fn turn(&self, row: &Bytes) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        self.stripes[(hasher.finish() as usize) % STRIPES]
            .lock()
            .await
    }
}

fn answer(window: &Window, place: &Place, inside: bool) -> Option<First> {
    window
        .first_in(place)
        .filter(|first| !inside || *first != First::Something)
}

/// How many cells from `place` on have values that together are small enough to ask for ahead.
fn affordable(window: &Window, place: &Place, most: u64) -> u64 {
    let Some((_, cells)) = window.from(place) else {
        return 0;
    };
    let same_row = |cell: &&CellFact| !window.scope.reverse || cell.row == place.row;
    let mut bytes = 0;
    cells
        .iter()
        .take_while(same_row)
        .take(usize::try_from(most).unwrap_or(usize::MAX))
        .take_while(|cell| {
            bytes += cell.length;
            bytes <= VALUE_BYTES_AHEAD
        })
        .count() as u64
}
