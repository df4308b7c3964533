// shell: looks at a file again and again
/** Configurations that count from the moment that their files change, without a restart. */
import { everyMs } from '@megaplane/base/deferred';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { JsonValue } from '@megaplane/machinery/json-value';
import type { ReloadMetrics } from '../request/reload-metrics.ts';
import type { ReviewEdge } from './review-client.ts';

/** A file is looked at so often. */
export const LOOK_MS = 1000;

export interface FollowedOptions {
  /** Without the dashes. */
  readonly flag: string;
  readonly file: string;
  readonly lookMs: number;
  readonly metrics: ReloadMetrics;
  readonly edge: Pick<ReviewEdge, 'log' | 'nowMs'>;
  /** Takes a configuration over, or throws an Error that says what is wrong with it. */
  readonly take: (configuration: JsonValue) => void;
}

/**
 * Takes what the file says now, and again whenever it has changed; one that is wrong then changes
 * nothing. Throws an Error whose message names the flag; call what it returns to stop.
 */
export function followConfiguration(options: FollowedOptions): () => void {
  const { flag, file, lookMs, metrics, edge, take } = options;
  let text: string | null = null;
  let fault = '';
  const look = (): boolean => {
    try {
      const now = readFileSync(file, 'utf8');
      if (now === text) return false;
      text = now;
      take(parse(now) as JsonValue);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`--${flag} ${file}: ${why}`, { cause: error });
    }
    fault = '';
    metrics.setConfiguration(hashOf(text ?? ''));
    return true;
  };
  look();
  const lookAgain = (): void => {
    try {
      if (!look()) return;
      metrics.countReload('success', edge.nowMs());
      edge.log(`--${flag}: the file has changed and counts from now on`);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message === fault) return;
      fault = message;
      metrics.countReload('failure', edge.nowMs());
      edge.log(`${message}; the configuration before goes on`);
    }
  };
  const timer = everyMs(lookMs, lookAgain).unref();
  return () => clearInterval(timer);
}

/** As upstream writes it into the metrics. */
function hashOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
