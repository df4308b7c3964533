/** What every benchmark can be asked for besides its tables: `--plot FILE.svg` (or `.png`). */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { BarPlot } from 'megaplane/plot';

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Rows of a table that a picture has room for. */
const ROWS_MAX = 24;
const BARS_MAX = 8;

const tables: Table[] = [];
let plotFile: string | undefined;

/** Where the picture goes; absent: there is none. */
export function askForPicture(file: string | undefined): void {
  plotFile = file;
}

/** A table that was printed: the picture shows its numbers. */
export function keepTable(table: Table): void {
  tables.push(table);
}

/**
 * Draws what was printed, where it was asked for, in a process of its own: benchmarks end at once
 * when they are done. A failure is told, and is the exit code.
 */
export function drawTables(title: string): void {
  if (plotFile === undefined) return;
  const groups = tables.flatMap((table) => groupsOf(table));
  const program = join(import.meta.dirname, 'draw.ts');
  const { status } = spawnSync(process.execPath, [program, plotFile], {
    input: JSON.stringify({ title, groups }),
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  if (status !== 0) process.exitCode = 1;
}

/** Each row is a group with a scale of its own: rows have units of their own. */
export function groupsOf({ head, rows }: Table): BarPlot['groups'] {
  return rows.slice(0, ROWS_MAX).flatMap((row) => {
    const words = row.filter(
      (cell, column) => column === 0 || (Number.isNaN(numberIn(cell)) && !cell.endsWith(' x')),
    );
    const bars = row.flatMap((cell, column) => {
      const value = numberIn(cell);
      if (column === 0 || Number.isNaN(value)) return [];
      return [{ label: head[column] ?? '', value }];
    });
    const label = words.filter((word) => word !== '' && word !== '-').join(', ');
    return bars.length === 0 ? [] : [{ label, bars: bars.slice(0, BARS_MAX) }];
  });
}

/** The number that a cell begins with: `12,345/s`, `4.2 ms`; NaN for words and for `3.1 x`. */
function numberIn(cell: string): number {
  if (cell.endsWith(' x')) return NaN;
  const found = /^-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?/.exec(cell.trim())?.[0];
  return found === undefined ? NaN : Number(found.replaceAll(',', ''));
}
