/** `megaplane bench trace`: which calls an API server makes to its etcd. */
import { Command, InvalidArgumentError } from 'commander';
import { path } from '../parsers/flag-parsers.ts';
import { serve } from '../service/service.ts';
import type { TraceProxyOptions } from '../trace/trace-proxy.ts';

function endpoint(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '') {
    throw new InvalidArgumentError('a URL such as http://127.0.0.1:2379 is needed.');
  }
  return url;
}

export function traceCommand(done: (exitCode: number) => void): Command {
  return new Command('trace')
    .summary('stands between an API server and an etcd, and tells which calls pass')
    .description(
      'Passes everything through as it is, and reads along: each call as a line of JSON, and at\n' +
        'the end (Ctrl-C) a table of shapes of calls by prefix, with sizes and latencies.\n\n' +
        'Example: megaplane bench trace --listen http://127.0.0.1:12379 ' +
        '--target http://127.0.0.1:2379 --log calls.jsonl',
    )
    .requiredOption('--listen <url>', 'where the API server connects to', endpoint)
    .requiredOption('--target <url>', 'the etcd, or a megaplane store', endpoint)
    .option('--cert-file <file>', 'certificate of the listening side', path)
    .option('--key-file <file>', 'its key', path)
    .option('--trusted-ca-file <file>', 'who connects shows a certificate of this authority', path)
    .option('--target-cacert <file>', 'authority of the etcd', path)
    .option('--target-cert <file>', 'certificate that is shown to the etcd', path)
    .option('--target-key <file>', 'its key', path)
    .option('--log <file>', 'each call as a line of JSON, added to this file', path)
    .option('--summary <file>', 'the table as JSON, too', path)
    .action(async (flags: TraceProxyOptions) => {
      const { startTraceProxy } = await import('../trace/trace-proxy.ts');
      done(await serve(() => startTraceProxy(flags)));
    });
}
