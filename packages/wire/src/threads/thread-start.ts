/** What a connection thread is started with, and what else passes between it and its starter. */
import type { ListenTls } from '../server/listener.ts';
import type { WireLimits } from '../limits.ts';
import type { ThreadMemory } from './relays.ts';

/** How often a thread shows that its event loop turns. */
export const PULSE_MS = 250;

export interface ThreadStart {
  readonly memory: ThreadMemory;
  readonly host: string;
  readonly port: number;
  readonly tls: ListenTls | null;
  readonly rules: {
    readonly alsoPlain: boolean;
    readonly isSilent: boolean;
    readonly speaksHttp2: boolean;
  };
  readonly limits: Partial<WireLimits>;
}

/** Null is a bell: look at the ring. */
export type ToThread =
  | null
  | { readonly kind: 'tls'; readonly tls: ListenTls }
  | { readonly kind: 'close'; readonly graceMs: number };

/** The same the other way. */
export type FromThread =
  | null
  | { readonly kind: 'listening'; readonly host: string; readonly port: number }
  | { readonly kind: 'failed'; readonly text: string; readonly code: string }
  | { readonly kind: 'error'; readonly text: string };
