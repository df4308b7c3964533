// shell: the terminal
/** Progress of long work: a bar on a terminal, a line now and then elsewhere. */
import cliProgress from 'cli-progress';

const LINE_EVERY_MS = 2000;

export interface Progress {
  /** Shows that `done` of `total` are reached. */
  show(done: number): void;
  finish(done: number): void;
}

/** Progress of `label`, written to stderr so that stdout stays for results. */
export function progress(label: string, total: number): Progress {
  return process.stderr.isTTY ? bar(label, total) : lines(label, total);
}

function bar(label: string, total: number): Progress {
  const single = new cliProgress.SingleBar({
    stream: process.stderr,
    hideCursor: true,
    etaBuffer: 50,
    format: (options, parameters) => {
      const drawn = cliProgress.Format.BarFormat(parameters.progress, {
        ...options,
        barCompleteString: '█'.repeat(40),
        barIncompleteString: '░'.repeat(40),
        barsize: 40,
      });
      return `${label.padEnd(14)} ${drawn} ${count(parameters.value)}/${count(parameters.total)}`;
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

function lines(label: string, total: number): Progress {
  const startMs = performance.now();
  let lastMs = startMs;
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
