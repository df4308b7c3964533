/**
 * `/debug/pprof`: profiles that `go tool pprof` reads, taken by V8. Of the profiles of a Go program
 * there are those that a program on V8 has, too: `profile` and `heap`.
 */
import type { Call } from '../request/call.ts';

const PREFIX = '/debug/pprof';
const CPU_SECONDS = 30;
/** V8 tells of what was made while it looked, so it has to look for a while. */
const HEAP_SECONDS = 5;
const SECONDS_MAX = 300;

export type ProfileKind = 'profile' | 'heap';

/** Takes profiles, one at a time. Given by the shell. */
export interface Profiler {
  /** Calls back once with a gzipped profile, or with a text that says why there is none. */
  take(kind: ProfileKind, seconds: number, then: (taken: Buffer | string) => void): void;
}

const INDEX = `<html>
<head>
<title>/debug/pprof/</title>
</head>
<body>
/debug/pprof/
<br>
<p>Types of profiles available:</p>
<ul>
<li><a href='heap?seconds=5'>heap</a>: memory by what was made in so many seconds (5), and the
rest by its kind</li>
<li><a href='profile?seconds=30'>profile</a>: processor time of the seconds given (30)</li>
</ul>
<p>Read them with <code>go tool pprof</code>. Goroutines, blocking, mutexes, threads and traces
of Go's runtime are not there: this server runs on V8.</p>
</body>
</html>
`;

/** Answers everything under `/debug/pprof`. */
export function answerProfiling(profiler: Profiler | null, call: Call): void {
  const { path } = call.info;
  if (path === PREFIX) {
    const headers = call.headers('location', `${PREFIX}/`);
    call.code = 302;
    call.exchange.respond(
      302,
      'text/html; charset=utf-8',
      '<a href="/debug/pprof/">Found</a>.\n\n',
      headers,
    );
    return;
  }
  const name = path.slice(PREFIX.length + 1);
  if (name === '') {
    call.send(200, 'text/html; charset=utf-8', INDEX);
    return;
  }
  if (name === 'symbol') {
    // nothing is known of any, which readers of profiles take for an answer
    call.sendText(200, 'num_symbols: 1\n');
    return;
  }
  if (profiler === null || (name !== 'profile' && name !== 'heap')) {
    refuse(call, 404, 'Unknown profile');
    return;
  }
  const text = call.query.text('seconds');
  // what is no number is taken for nothing, as Go does it
  const asked = /^\d+$/.test(text) ? Math.min(Number(text), SECONDS_MAX) : 0;
  take(profiler, call, name, asked || (name === 'heap' ? HEAP_SECONDS : CPU_SECONDS));
}

function take(profiler: Profiler, call: Call, kind: ProfileKind, seconds: number): void {
  call.isLasting = true;
  profiler.take(kind, seconds, (taken) => {
    if (call.exchange.closed) {
      call.done();
      return;
    }
    if (typeof taken === 'string') refuse(call, 500, taken);
    else {
      const disposition = ['content-disposition', `attachment; filename="${kind}"`];
      const headers = call.headers('x-content-type-options', 'nosniff', ...disposition);
      call.code = 200;
      call.exchange.respond(200, 'application/octet-stream', taken, headers);
    }
    call.done();
  });
}

function refuse(call: Call, code: number, text: string): void {
  call.sendText(code, `${text}\n`, ['x-go-pprof', '1']);
}
