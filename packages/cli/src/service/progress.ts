// shell: the terminal
/** Progress of long work: a bar on a terminal, a line now and then elsewhere. */
import cliProgress from 'cli-progress';

const LINE_EVERY_MS = 2000;
const BAR_COLUMNS_MAX = 40;
const LABEL_COLUMNS = 14;

/** Columns of a bar so that its numbers still find room on the line. */
export function barColumns(total: number, terminalColumns: number): number {
  const numbers = 2 * count(total).length + '/'.length;
  const left = terminalColumns - LABEL_COLUMNS - numbers - 2;
  return Math.max(0, Math.min(BAR_COLUMNS_MAX, left));
}

export interface Progress {
  /** Shows that `done` of `total` are reached. */
  show(done: number): void;
  finish(done: number): void;
}

/**
 * Progress of `label`, written to stderr so that stdout stays for results. Lines tell the time
 * since `startMs` of the clock of `performance`: this moment, if not another is named.
 */
export function progress(
  label: string,
  total: number,
  startMs: number = performance.now(),
): Progress {
  return drawsBars(process.stderr.isTTY, process.env['TERM'])
    ? bar(label, total)
    : lines(label, total, startMs);
}

/** A dumb terminal, as that of an editor, shows what moves the cursor as characters. */
export function drawsBars(isTerminal: boolean, term: string | undefined): boolean {
  return isTerminal && term !== 'dumb';
}

function bar(label: string, total: number): Progress {
  const single = new cliProgress.SingleBar({
    stream: process.stderr,
    hideCursor: true,
    etaBuffer: 50,
    format: (options, parameters) => {
      const columns = barColumns(parameters.total, process.stderr.columns);
      const drawn = cliProgress.Format.BarFormat(parameters.progress, {
        ...options,
        barCompleteString: '█'.repeat(columns),
        barIncompleteString: '░'.repeat(columns),
        barsize: columns,
      });
      const numbers = `${count(parameters.value)}/${count(parameters.total)}`;
      return `${label.padEnd(LABEL_COLUMNS)} ${drawn} ${numbers}`;
    },
  });
  single.start(total, 0);
  return {
    show: (done) => single.update(done),
    finish: (done) => {
      single.update(done);
      single.stop();
    },
  };
}

function lines(label: string, total: number, startMs: number): Progress {
  let lastMs = performance.now();
  const say = (done: number): void => {
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    process.stderr.write(`${label}: ${count(done)} of ${count(total)} after ${seconds} s\n`);
  };
  return {
    show: (done) => {
      if (performance.now() - lastMs < LINE_EVERY_MS) return;
      lastMs = performance.now();
      say(done);
    },
    finish: say,
  };
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
