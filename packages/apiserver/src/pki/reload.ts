// shell: looks at files again and again
/** Certificates that are renewed on disk are taken up without a restart. */
import { everyMs } from '@megaplane/base/deferred';
import type { Listener, ListenTls } from '@megaplane/wire/listener';

/** A changed file is taken in so much later at most. */
const RELOAD_MS = 5000;

/**
 * Gives `read`'s result to the listener whenever it has changed, then calls `onReload`; call what
 * it returns to stop.
 */
export function reloadCertificates(
  listener: Listener,
  read: () => ListenTls,
  log: (level: 'info' | 'error', message: string) => void,
  periodMs: number = RELOAD_MS,
  onReload: () => void = () => {},
): () => void {
  let last = JSON.stringify(read());
  const timer = everyMs(periodMs, () => {
    try {
      const tls = read();
      const now = JSON.stringify(tls);
      if (now === last) return;
      listener.reloadTls(tls);
      onReload();
      last = now;
      log('info', 'the serving certificate was loaded again');
    } catch (error) {
      // key and certificate are seldom replaced at the same moment: the next look finds both
      const why = error instanceof Error ? error.message : String(error);
      log('error', `the serving certificate was not loaded again: ${why}`);
    }
  });
  timer.unref();
  return () => clearInterval(timer);
}
