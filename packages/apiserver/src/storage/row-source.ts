/** Where the rows of a list come from. */
import type { PageOutcome, Row } from './storage.ts';

/** As `Storage.page`: may leave out rows that the list's filter refuses, and no others. */
export interface RowSource {
  page(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome;
  /** How many rows the range has, where this source knows it better than storage does. */
  readonly total?: number;
  /** As `Storage.keys`. */
  keys?(start: Buffer, end: Buffer, revision: number, visit: (row: Row) => boolean): PageOutcome;
}
