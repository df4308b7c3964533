// shell: signals, the ready line and the end of a long-running subcommand
/**
 * What every long-running subcommand does around its server: one line on stdout when it is ready,
 * a graceful stop on SIGTERM or SIGINT within `STOP_MS_MAX`, an immediate one on the second
 * signal, exit code 1 with one line when it fails.
 */
import { BrokenInvariant } from '@megaplane/base/assert';
import { afterMs, blame, guarded } from '@megaplane/base/deferred';

export const STOP_MS_MAX = 10_000;

/** Set for children of `megaplane up`: their stdin is a pipe whose end means the parent is gone. */
export const STOP_ON_STDIN_END = 'MEGAPLANE_STOP_ON_STDIN_END';

/** A running server. */
export interface Service {
  /** What it listens on, or whom it serves, for the ready line. */
  readonly listens: string;
  /** Resolves once it is drained and flushed. */
  stop(): Promise<void>;
  /** Settles only when the server cannot go on; the error says why. */
  readonly failure?: Promise<Error>;
}

/**
 * Starts a service, announces it and waits for its end; a signal during the start ends it at once.
 * Resolves with the exit code, after which the process must exit.
 */
export async function serve(start: () => Promise<Service>): Promise<number> {
  const { promise: asked, resolve: ask } = Promise.withResolvers<'asked'>();
  let signals = 0;
  const onSignal = (): void => {
    if (++signals > 1) process.exit(1);
    ask('asked');
  };
  process.on('SIGTERM', guarded(onSignal)).on('SIGINT', guarded(onSignal));
  if (process.env[STOP_ON_STDIN_END] !== undefined) {
    process.stdin.on('end', guarded(onSignal)).on('error', guarded(onSignal)).resume();
  }
  const service = await Promise.race([start(), asked]);
  // Nothing was promised to anybody yet: a start that is given up ends as if it were killed.
  if (service === 'asked') return 0;
  process.stdout.write(`ready in ${Math.round(performance.now())} ms: ${service.listens}\n`);
  let failure: Error | null = null;
  const failed = service.failure?.then((error) => {
    // Also while it stops: what was not flushed is not promised to be there.
    process.stderr.write(`megaplane: ${error.message}\n`);
    failure = error;
  });
  goOnAfterErrors();
  await Promise.race([asked, failed ?? asked]);
  // Not unref'd: a stop that hangs must end the process even when nothing else is left to do.
  const overdue = afterMs(STOP_MS_MAX, () => {
    process.stderr.write(`megaplane: not stopped within ${STOP_MS_MAX} ms, giving up\n`);
    process.exit(1);
  });
  await service.stop();
  clearTimeout(overdue);
  return failure === null ? 0 : 1;
}

/**
 * The last net: what nobody has caught, an error of a library's own turn or a promise that nobody
 * waited for, is told of and ends no process. Errors of the store do: what goes on with broken
 * state may write it down.
 */
function goOnAfterErrors(): void {
  process.on(
    'uncaughtException',
    guarded((error: unknown) => {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      if (!(error instanceof BrokenInvariant) && !OF_STORE.test(text)) {
        blame(error, null);
        return;
      }
      process.stderr.write(`megaplane: ${text}\n`);
      process.exit(1);
    }),
  );
}

/** Thrown by the store, or by what it has called. */
const OF_STORE = /[\\/]store[\\/]src[\\/]/;
