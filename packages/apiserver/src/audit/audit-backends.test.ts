// shell: files and sockets of the audit log
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { stringAt } from '@megaplane/machinery/json';
import type { WebhookResponse } from '../webhook/webhook-call.ts';
import { runApiserver } from '../server/run.ts';
import {
  AuditFaults,
  BufferedBackend,
  forgiving,
  truncating,
  unitedBackends,
  type AuditBackend,
} from './audit-backends.ts';
import { AuditEvent } from './audit-event.ts';
import { openAudit, type AuditFlags } from './audit-flags.ts';
import { AuditLog } from './audit-log.ts';
import { AuditWebhook } from './audit-webhook.ts';

const dir = mkdtempSync(join(tmpdir(), 'megaplane-audit-'));
after(() => rmSync(dir, { recursive: true, force: true }));

const HEAD = { kind: 'Event', apiVersion: 'audit.k8s.io/v1', level: 'RequestResponse' };

/** Events by name, each of about `bytes`. */
function events(names: string, bytes = 0): AuditEvent[] {
  const filling = 'x'.repeat(bytes);
  return names
    .split('')
    .map((auditID) => new AuditEvent({ ...HEAD, auditID, requestObject: filling }));
}

function named(all: readonly AuditEvent[]): string {
  return all.map(({ object }) => stringAt(object, 'auditID')).join('');
}

/** Keeps what it is given as `abc` for each time; `answer` is what it says. */
function keeper(answer = true): AuditBackend & { readonly got: string[] } {
  const got: string[] = [];
  return {
    got,
    take: (all, told) => {
      got.push(named(all));
      told(answer);
    },
    close: () => Promise.resolve(),
  };
}

function clock() {
  let nowMs = 0;
  let due: { atMs: number; work: () => void }[] = [];
  return {
    nowMs: () => nowMs,
    after: (ms: number, work: () => void) => void due.push({ atMs: nowMs + ms, work }),
    random: () => 0.5,
    pass(ms: number): void {
      const untilMs = nowMs + ms;
      for (;;) {
        const [next] = due.toSorted((a, b) => a.atMs - b.atMs);
        if (next === undefined || next.atMs > untilMs) break;
        due = due.filter((one) => one !== next);
        nowMs = next.atMs;
        next.work();
      }
      nowMs = untilMs;
    },
  };
}

function faultsIn(): {
  readonly faults: AuditFaults;
  readonly told: string[];
  count: () => string;
} {
  const told: string[] = [];
  const faults = new AuditFaults((message) => void told.push(message));
  const count = (): string => {
    const lines: string[] = [];
    faults.print(lines);
    return lines.slice(2).join(' ');
  };
  return { faults, told, count };
}

test('batches leave when they are full or their time is over, and no faster than allowed', () => {
  const timers = clock();
  const { faults, told, count } = faultsIn();
  const to = keeper();
  const options = {
    bufferSize: 2,
    batchSizeMax: 3,
    waitMsMax: 30_000,
    throttle: { perSecond: 1, burst: 2 },
  };
  const buffer = new BufferedBackend(to, options, timers, faults);
  buffer.take(events('ab'), assert);
  timers.pass(29_999);
  assert.deepEqual(to.got, []);
  timers.pass(1);
  assert.deepEqual(to.got, ['ab']);
  timers.pass(100_000);
  buffer.take(events('cdefghijklmn'), assert);
  assert.deepEqual(to.got, ['ab', 'cde', 'fgh']);
  assert.match(told.join(''), /'buffered' affecting 1 audit events: audit buffer queue blocked/);
  assert.equal(count(), 'apiserver_audit_error_total{plugin="buffered"} 1');
  timers.pass(1000);
  assert.deepEqual(to.got.slice(3), ['ijk']);
  timers.pass(30_000);
  assert.deepEqual(to.got.slice(4), ['lm']);
});

test('a buffer that is closed lets go of all it has, and takes no more', async () => {
  const timers = clock();
  const { faults, told } = faultsIn();
  const to = keeper();
  const options = { bufferSize: 9, batchSizeMax: 2, waitMsMax: 1000, throttle: null };
  const buffer = new BufferedBackend(to, options, timers, faults);
  buffer.take(events('abc'), assert);
  await buffer.close();
  assert.deepEqual(to.got, ['ab', 'c']);
  buffer.take(events('d'), assert);
  assert.match(told[0] ?? '', /audit backend shut down/);
});

test('large events lose objects, large batches are split, what is too large is lost', () => {
  const { faults, told } = faultsIn();
  const to = keeper();
  const texts: string[] = [];
  const backend: AuditBackend = {
    ...to,
    take: (all, then) => {
      texts.push(...all.map(({ text }) => text));
      to.take(all, then);
    },
  };
  const cut = truncating(backend, { eventBytesMax: 300, batchBytesMax: 500 }, faults);
  const long = new AuditEvent({ ...HEAD, auditID: 'x'.repeat(300) });
  cut.take([...events('abc', 100), ...events('d', 300), long], assert);
  assert.deepEqual(to.got, ['ab', 'cd']);
  const annotations = { 'audit.k8s.io/truncated': 'true' };
  assert.deepEqual(JSON.parse(texts[3] ?? ''), { ...HEAD, auditID: 'd', annotations });
  assert.match(told.join(''), /'truncate' affecting 1 .* too large even after truncating/);
});

test('what one of several does not keep is not kept, unless nobody minds', () => {
  const said: boolean[] = [];
  unitedBackends([keeper(), keeper(false)]).take(events('a'), (kept) => void said.push(kept));
  const minding = unitedBackends([keeper(), forgiving(keeper(false))]);
  minding.take(events('a'), (kept) => void said.push(kept));
  assert.deepEqual(said, [false, true]);
});

test('a webhook gets lists, again and again where it fails, and then it is told', () => {
  const timers = clock();
  const { faults, told, count } = faultsIn();
  const bodies: string[] = [];
  let answer: WebhookResponse = { ok: false, why: 'EOF' };
  const credential = { certificate: '', key: '', token: '' };
  const target = { host: 'h', port: 1, serverName: 'h', authority: 'h:1', path: '/p' };
  const webhook = new AuditWebhook(
    {
      target: { ...target, caBundle: '', credential, isPlain: true },
      caller: {
        call: (_target, body, timeoutMs, then) => {
          assert.equal(timeoutMs, 30_000);
          bodies.push(body.toString());
          then(answer);
        },
      },
      initialDelayMs: 10_000,
    },
    timers,
    faults,
  );
  const said: boolean[] = [];
  webhook.take(events('ab'), (kept) => void said.push(kept));
  const list = JSON.parse(bodies[0] ?? '') as { items: object[] };
  const item = { level: 'RequestResponse', auditID: 'a', requestObject: '' };
  assert.deepEqual(list.items, [item, { ...item, auditID: 'b' }]);
  // 10, 15, 22.5 and 33.75 seconds, and a tenth of each
  timers.pass(11_000 + 16_500 + 24_750);
  assert.deepEqual([bodies.length, said], [4, []]);
  timers.pass(37_125);
  assert.deepEqual([bodies.length, said], [5, [false]]);
  assert.match(told[0] ?? '', /'webhook' affecting 2 .*: Post "http:\/\/h:1\/p": EOF\nImpacted/);
  assert.equal(count(), 'apiserver_audit_error_total{plugin="webhook"} 2');
  answer = { ok: true, status: 500, contentType: '', body: Buffer.from('no') };
  webhook.take(events('c'), (kept) => void said.push(kept));
  answer = { ok: true, status: 200, contentType: '', body: Buffer.from('') };
  timers.pass(11_000);
  assert.deepEqual(said, [false, true]);
});

test('a receiver that never answers holds 64 MiB of events; later ones are lost, and told', () => {
  const timers = clock();
  const { faults, told, count } = faultsIn();
  const waiting: ((response: WebhookResponse) => void)[] = [];
  const credential = { certificate: '', key: '', token: '' };
  const webhook = new AuditWebhook(
    {
      target: {
        ...{ host: 'h', port: 1, serverName: 'h', authority: 'h:1', path: '/p' },
        ...{ caBundle: '', credential },
      },
      caller: { call: (_target, _body, _timeoutMs, then) => void waiting.push(then) },
      initialDelayMs: 10_000,
    },
    timers,
    faults,
  );
  const said: boolean[] = [];
  const take = (mebibytes: number): void =>
    webhook.take(events('a', mebibytes * 2 ** 20), (kept) => void said.push(kept));
  for (let more = 0; more < 70; more++) take(1);
  assert.equal(waiting.length, 63);
  assert.deepEqual(said, Array.from({ length: 7 }).fill(false));
  assert.equal(count(), 'apiserver_audit_error_total{plugin="webhook"} 7');
  assert.match(told[0] ?? '', /affecting 1 audit events: too many events wait for the webhook\n/);
  // one that waits to be sent again still counts
  waiting[0]?.({ ok: false, why: 'EOF' });
  take(1);
  assert.equal(waiting.length, 63);
  for (const answer of waiting.splice(0).slice(1)) {
    answer({ ok: true, status: 200, contentType: '', body: Buffer.from('') });
  }
  take(1);
  assert.equal(waiting.length, 1);
  timers.pass(11_000);
  for (const answer of waiting.splice(0)) {
    answer({ ok: true, status: 200, contentType: '', body: Buffer.from('') });
  }
  take(65);
  assert.equal(waiting.length, 1, 'one that is larger goes alone');
});

test('one line tells who asked for what, as upstream writes it', () => {
  const event = new AuditEvent({
    ...HEAD,
    auditID: 'i',
    stage: 'ResponseComplete',
    requestURI: '/api?x="',
    verb: 'get',
    user: { username: 'u', groups: ['a', 'b'] },
    impersonatedUser: { username: 'v' },
    sourceIPs: ['1.2.3.4', '5.6.7.8'],
    userAgent: 'k',
    objectRef: { namespace: 'n' },
    responseStatus: { code: 200 },
    requestReceivedTimestamp: '2026-01-02T03:04:05.120000Z',
  });
  assert.equal(
    event.line,
    '2026-01-02T03:04:05.12Z AUDIT: id="i" stage="ResponseComplete" ip="1.2.3.4" method="get" ' +
      'user="u" groups="\\"a\\",\\"b\\"" as="v" asgroups="<lookup>" user-agent="k" ' +
      'namespace="n" uri="/api?x=\\"" response="200"',
  );
  const { line } = new AuditEvent({ requestReceivedTimestamp: '2026-01-02T03:04:05.000000Z' });
  assert.match(line, /^2026-01-02T03:04:05Z AUDIT: .*ip="<unknown>" .*response="<deferred>"$/);
  assert.match(line, /user="<none>" groups="<none>" as="<self>" asgroups="<lookup>"/);
});

function opened(flags: AuditFlags): void {
  openAudit(flags, { caller: { call: () => {} }, log: () => {} });
}

test('flags that cannot be are refused in upstream’s words', () => {
  const policy = join(dir, 'policy.yaml');
  writeFileSync(policy, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n');
  const refused = (flags: AuditFlags, words: RegExp): void =>
    assert.throws(() => opened({ auditLogPath: '-', ...flags }), words);
  refused({ auditLogMode: 'x' }, /invalid audit log mode x, allowed modes are "batch,blocking,/);
  refused({ auditLogFormat: 'x' }, /invalid audit log format x, allowed formats are "legacy,json"/);
  const batch = { auditLogMode: 'batch' };
  refused({ ...batch, auditLogBatchBufferSize: 0 }, /audit batch log buffer size 0, must be a po/);
  refused({ ...batch, auditLogBatchThrottleEnable: true }, /audit batch log throttle QPS 0, must/);
  refused({ auditLogTruncateMaxEventSize: 0 }, /audit truncate log max event size 0, must be/);
  refused({ auditLogTruncateMaxBatchSize: 9 }, /max batch size 9, must be greater than max event/);
  refused({ auditLogVersion: 'v1' }, /invalid group version, allowed versions are/);
  refused({ auditWebhookConfigFile: join(dir, 'none') }, /--audit-webhook-config-file: .*ENOENT/);
  refused({ auditPolicyFile: join(dir, 'none') }, /--audit-policy-file/);
  refused({ auditPolicyFile: policy, auditLogPath: '/proc/no/dir' }, /--audit-log-path: cannot be/);
  assert.equal(openAudit({ auditPolicyFile: policy }, { caller: { call() {} }, log() {} }), null);
});

test('a full audit log is put aside, and the oldest ones go', async () => {
  const path = join(dir, 'logs', 'audit.log');
  const { faults, told } = faultsIn();
  const log = new AuditLog({ path, sizeMegabytesMax: 1, backupsMax: 2, isStrict: true }, faults);
  log.take(events('abcdefghijkl', 400_000), assert);
  await log.close();
  const files = readdirSync(join(dir, 'logs'));
  assert.equal(files.length, 3, files.join(' '));
  for (const name of files) assert(readFileSync(join(dir, 'logs', name)).length <= 1024 * 1024);
  assert.deepEqual(told, []);
  const again = new AuditLog({ path, sizeMegabytesMax: 1, isStrict: true }, faults);
  again.take(events('z', 2 ** 20), (isKept) => assert(!isKept));
  assert.match(told[0] ?? '', /write length \d+ exceeds maximum file size 1048576/);
  await again.close();
});

test('full audit logs are packed, and go when their names say that they are old', async () => {
  const path = join(dir, 'packed.log');
  const old = join(dir, 'packed-2001-01-02T03-04-05.678.log.gz');
  const others = join(dir, 'packed-by-somebody.log.gz');
  for (const name of [old, others]) writeFileSync(name, '');
  const { faults } = faultsIn();
  const log = new AuditLog({ path, sizeMegabytesMax: 1, isCompressed: true }, faults);
  const packed = (): string[] =>
    readdirSync(dir).filter((name) => name.startsWith('packed-2') && name.endsWith('.gz'));
  assert.deepEqual(packed(), []);
  log.take(events('abc', 400_000), assert);
  await log.close();
  const isPacked = (): boolean =>
    packed().length === 1 && !readdirSync(dir).some((name) => /^packed-.*\.log$/.test(name));
  for (let waits = 0; waits < 3000 && !isPacked(); waits++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const [name = ''] = packed();
  const { length } = events('a', 400_000)[0]?.text ?? '';
  assert.equal(gunzipSync(readFileSync(join(dir, name))).length, 2 * length);
  assert(readdirSync(dir).includes('packed-by-somebody.log.gz'));
});

/** A server that writes its events to a program that answers as told. */
async function served(flags: AuditFlags, answer: () => number) {
  const got: { readonly items: readonly { readonly stage: string }[] }[] = [];
  const hook = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => void pieces.push(piece));
    request.on('end', () => {
      got.push(JSON.parse(Buffer.concat(pieces).toString()) as (typeof got)[number]);
      response.writeHead(answer()).end();
    });
  });
  await new Promise<void>((done) => void hook.listen(0, '127.0.0.1', done));
  const { port } = hook.address() as AddressInfo;
  const auditWebhookConfigFile = join(dir, 'hook.kubeconfig');
  writeFileSync(
    auditWebhookConfigFile,
    `clusters: [{name: c, cluster: {server: 'http://127.0.0.1:${port}/k8s-audit'}}]
contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n`,
  );
  const auditPolicyFile = join(dir, 'hook-policy.yaml');
  writeFileSync(
    auditPolicyFile,
    `apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:
- {level: Metadata, nonResourceURLs: ['/version']}\n- {level: None}\n`,
  );
  const socketPath = join(dir, 'hook.sock');
  const service = await runApiserver({
    ...{ dataDir: join(dir, 'data'), bindAddress: '127.0.0.1', securePort: 0 },
    ...{ unixSocket: socketPath, log: () => {}, auditWebhookConfigFile, auditPolicyFile, ...flags },
  });
  const ask = async (path: string): Promise<string> => {
    const { request } = await import('node:http');
    return new Promise((done) => {
      const sent = request({ socketPath, path }, (response) => {
        let text = '';
        response.on('data', (piece) => (text += String(piece)));
        response.on('end', () => done(`${response.statusCode} ${text.trim()}`));
      });
      sent.end();
    });
  };
  const stop = async (): Promise<void> => {
    await service.stop();
    await new Promise((done) => void hook.close(done));
  };
  return { got, ask, stop };
}

test('a request waits for a strict webhook, and fails where nobody writes it down', async () => {
  let code = 500;
  const flags = { auditWebhookMode: 'blocking-strict', auditWebhookInitialBackoff: '1ms' };
  const { got, ask, stop } = await served(flags, () => code);
  const refusal = '500 Internal Server Error: "/version": failed to store audit event';
  assert.equal(await ask('/version'), refusal);
  assert.equal(got.length, 5);
  code = 200;
  assert.match(await ask('/version'), /^200 /);
  const metrics = await ask('/metrics');
  assert.match(metrics, /^apiserver_audit_requests_rejected_total 1$/m);
  assert.match(metrics, /^apiserver_audit_error_total\{plugin="webhook"\} 1$/m);
  await stop();
  assert.deepEqual(
    got.slice(5).map(({ items }) => items.map(({ stage }) => stage)),
    [['RequestReceived'], ['ResponseComplete']],
  );
});

test('what waits for a webhook leaves when the server stops', async () => {
  const { got, ask, stop } = await served({}, () => 200);
  assert.match(await ask('/version'), /^200 /);
  assert.equal(got.length, 0);
  await stop();
  const stages = got.map(({ items }) => items.map(({ stage }) => stage));
  assert.deepEqual(stages, [['RequestReceived', 'ResponseComplete']]);
});
