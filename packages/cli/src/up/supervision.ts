/**
 * One child process seen as a state machine: what happened goes in, what to do comes out.
 *
 *     stopped -> starting -> ready -> backingOff -> starting ...
 *                    \-> failed          any -> stopping -> stopped
 *
 * A child that dies before it was ever ready is not tried again: its flags, port or data are
 * wrong, and the same start would fail the same way. One that was ready once is restarted, with a
 * pause that doubles while it keeps dying and is forgotten once it has lived long enough.
 */

export const BACKOFF_MS_MIN = 200;
export const BACKOFF_MS_MAX = 30_000;
/** A child that has been ready for so long has its next back-off start from the minimum. */
export const STEADY_MS = 60_000;
/** After this a child that was asked to stop is killed. */
export const STOP_GRACE_MS = 9_000;

export type ChildState =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'starting'; readonly backoffMs: number; readonly hasBeenReady: boolean }
  | { readonly kind: 'ready'; readonly backoffMs: number; readonly sinceMs: number }
  | { readonly kind: 'backingOff'; readonly backoffMs: number; readonly untilMs: number }
  | { readonly kind: 'stopping'; readonly killAtMs: number }
  | { readonly kind: 'failed'; readonly exit: string };

export type ChildEvent =
  | { readonly kind: 'start' }
  | { readonly kind: 'ready' }
  | { readonly kind: 'exited'; readonly exit: string }
  | { readonly kind: 'stop' }
  | { readonly kind: 'tick' };

export type ChildEffect =
  | { readonly kind: 'spawn' }
  | { readonly kind: 'signal'; readonly signal: 'SIGTERM' | 'SIGKILL' }
  | { readonly kind: 'wakeAt'; readonly timeMs: number }
  | { readonly kind: 'report'; readonly text: string };

export interface ChildStep {
  readonly state: ChildState;
  readonly effects: readonly ChildEffect[];
}

/** The state after `event` at `nowMs`, and what to do. Events that do not fit change nothing. */
export function step(state: ChildState, event: ChildEvent, nowMs: number): ChildStep {
  switch (event.kind) {
    case 'start':
      return state.kind === 'stopped' ? spawning(BACKOFF_MS_MIN, false) : unchanged(state);
    case 'ready':
      return state.kind === 'starting' ? readied(state, nowMs) : unchanged(state);
    case 'exited':
      return exited(state, event.exit, nowMs);
    case 'stop':
      return stopped(state, nowMs);
    case 'tick':
      return ticked(state, nowMs);
  }
}

function spawning(backoffMs: number, hasBeenReady: boolean): ChildStep {
  return { state: { kind: 'starting', backoffMs, hasBeenReady }, effects: [{ kind: 'spawn' }] };
}

function readied(state: Extract<ChildState, { kind: 'starting' }>, nowMs: number): ChildStep {
  const { backoffMs, hasBeenReady } = state;
  // Its death was told: so must be that nobody has to do anything about it.
  const effects: ChildEffect[] = hasBeenReady ? [{ kind: 'report', text: 'is ready again' }] : [];
  return { state: { kind: 'ready', backoffMs, sinceMs: nowMs }, effects };
}

function unchanged(state: ChildState): ChildStep {
  return { state, effects: [] };
}

function exited(state: ChildState, exit: string, nowMs: number): ChildStep {
  if (state.kind === 'stopping') return unchanged({ kind: 'stopped' });
  if (state.kind === 'starting' && !state.hasBeenReady) return unchanged({ kind: 'failed', exit });
  if (state.kind !== 'starting' && state.kind !== 'ready') return unchanged(state);
  const isSteady = state.kind === 'ready' && nowMs - state.sinceMs >= STEADY_MS;
  const backoffMs = isSteady ? BACKOFF_MS_MIN : state.backoffMs;
  const untilMs = nowMs + backoffMs;
  return {
    state: {
      kind: 'backingOff',
      backoffMs: Math.min(backoffMs * 2, BACKOFF_MS_MAX),
      untilMs,
    },
    effects: [
      { kind: 'report', text: `died (${exit}), starting again in ${backoffMs} ms` },
      { kind: 'wakeAt', timeMs: untilMs },
    ],
  };
}

function stopped(state: ChildState, nowMs: number): ChildStep {
  switch (state.kind) {
    case 'starting':
    case 'ready': {
      const killAtMs = nowMs + STOP_GRACE_MS;
      return {
        state: { kind: 'stopping', killAtMs },
        effects: [
          { kind: 'signal', signal: 'SIGTERM' },
          { kind: 'wakeAt', timeMs: killAtMs },
        ],
      };
    }
    case 'backingOff':
      return unchanged({ kind: 'stopped' });
    case 'stopped':
    case 'stopping':
    case 'failed':
      return unchanged(state);
  }
}

function ticked(state: ChildState, nowMs: number): ChildStep {
  if (state.kind === 'backingOff' && nowMs >= state.untilMs) return spawning(state.backoffMs, true);
  if (state.kind === 'stopping' && nowMs >= state.killAtMs) {
    return { state, effects: [{ kind: 'signal', signal: 'SIGKILL' }] };
  }
  return unchanged(state);
}
