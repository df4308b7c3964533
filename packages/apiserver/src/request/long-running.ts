/** Requests that last as long as their client likes: upstream's BasicLongRunningRequestCheck. */
import type { Call } from './call.ts';
import { effectiveVerb } from './request-terms.ts';

const SUBRESOURCES: ReadonlySet<string> = new Set([
  'attach',
  'exec',
  'log',
  'portforward',
  'proxy',
]);

/** Limits on the number and time of requests are not for these. */
export function isLongRunning(call: Call): boolean {
  const { info } = call;
  if (!info.isResource) return info.path.startsWith('/debug/pprof/');
  return (
    effectiveVerb(call) === 'watch' || info.verb === 'proxy' || SUBRESOURCES.has(info.subresource)
  );
}
