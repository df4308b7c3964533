/** All cases of h2spec, a program in Go, against both kinds of port. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { Handler } from '../src/http/exchange.ts';
import { listen, type ListenTls } from '../src/server/listener.ts';

const run = promisify(execFile);
const H2SPEC = 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible';
const BUILD_MS = 120_000;

const handler: Handler = (exchange) =>
  exchange.respond(200, 'text/plain', `${exchange.method} ${exchange.body.length}\n`);

function has(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((path) => existsSync(join(path, program)));
}

async function h2specPath(): Promise<string> {
  const bin = join(homedir(), '.cache', 'megaplane', 'h2spec-2.2.1');
  const path = join(bin, 'h2spec');
  if (existsSync(path)) return path;
  mkdirSync(bin, { recursive: true });
  await run('go', ['install', H2SPEC], { env: { ...process.env, GOBIN: bin }, timeout: BUILD_MS });
  return path;
}

function certificate(directory: string): ListenTls {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const files = ['-keyout', 'server.key', '-out', 'server.crt', '-subj', '/CN=localhost'];
  const options = { cwd: directory, stdio: 'ignore' } as const;
  execFileSync('openssl', ['req', '-x509', ...key, ...files], options);
  const pem = (name: string): string => readFileSync(join(directory, name), 'utf8');
  return { key: pem('server.key'), cert: pem('server.crt') };
}

const noGo = has('go') ? false : 'Go is missing: install it from go.dev to run h2spec';
const noOpenssl = has('openssl') ? false : 'openssl is missing: apt-get install openssl';

test('every case of h2spec passes', { skip: noGo || noOpenssl }, async (context) => {
  const h2spec = await h2specPath().catch(() => '');
  if (h2spec === '') return context.skip(`cannot be had: go install ${H2SPEC}`);
  const directory = mkdtempSync(join(tmpdir(), 'megaplane-h2spec-'));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  const secure = await listen({ handler, tls: certificate(directory) });
  context.after(() => secure.close());
  const port = String(secure.address.port);
  const words = ['generic', 'http2', 'hpack', '-h', '127.0.0.1', '-p', port, '-o', '2', '-t', '-k'];
  const { stdout } = await run(h2spec, words).catch((error: { stdout: string }) => error);
  const failed = stdout.slice(stdout.indexOf('Failures:'));
  assert.match(stdout, /\b145 tests, 145 passed, 0 skipped, 0 failed/, failed);
  // The preface is judged elsewhere where no TLS has chosen the protocol.
  const silent = await listen({ handler, isSilent: true });
  context.after(() => silent.close());
  const prefaces = ['http2/3.5', '-h', '127.0.0.1', '-p', String(silent.address.port), '-o', '2'];
  const plainly = await run(h2spec, prefaces).catch((error: { stdout: string }) => error);
  assert.match(plainly.stdout, /\b2 tests, 2 passed, 0 skipped, 0 failed/, plainly.stdout);
});
