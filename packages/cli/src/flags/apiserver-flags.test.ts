import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Command } from 'commander';
import {
  addServingFlags,
  refusedApiserverFlag,
  unusedApiserverFlags,
  versionText,
} from './apiserver-flags.ts';
import { type ApiserverFlags, optionsOf } from './apiserver-options.ts';
import { apiserverCommand } from '../commands/apiserver.ts';

/** The table of the docs: each flag of kube-apiserver 1.36, and what becomes of it here. */
const ROWS = readFileSync(join(import.meta.dirname, '../../../../docs/apiserver-flags.md'), 'utf8')
  .split('\n')
  .map((line) => /^\| `--([a-z0-9-]+)` \| (.*) \|$/.exec(line))
  .filter((row) => row !== null)
  .map(([, name = '', here = '']) => ({ name, here }));

function parsed(...args: string[]): Command {
  const command = addServingFlags(new Command('apiserver')).allowUnknownOption();
  return command.allowExcessArguments().parse(args, { from: 'user' });
}

/** What the whole command makes of its words. */
function flagsOf(...args: string[]): ApiserverFlags {
  const command = apiserverCommand(() => {}).action(() => {});
  return command
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .parse(args, { from: 'user' })
    .opts() as unknown as ApiserverFlags;
}

test('each flag of kube-apiserver is known, and what the docs say of it is done', () => {
  assert(ROWS.length > 170);
  const known = new Set(apiserverCommand(() => {}).options.map(({ long }) => long?.slice(2)));
  known.add('help');
  for (const { name, here } of ROWS) {
    assert(known.has(name), `--${name} is refused`);
    const unused = withWord(name);
    const isRefused = refusedApiserverFlag(unused) !== null;
    const isUnused = unusedApiserverFlags(unused).includes(name);
    const done = isRefused ? 'refused' : isUnused ? 'taken' : 'obeyed';
    assert(here.startsWith(done), `--${name} is ${done}, the docs say ${here}`);
  }
});

/** Parsers of flags that are obeyed take no such word; they are not asked. */
function withWord(name: string): Command {
  try {
    const bare = addServingFlags(new Command('apiserver')).allowUnknownOption();
    const quiet = bare
      .allowExcessArguments()
      .exitOverride()
      .configureOutput({ writeErr: () => {} });
    return quiet.parse([`--${name}=on`], { from: 'user' });
  } catch {
    return parsed();
  }
}

test('flags without an effect are named, those whose meaning would be missed are refused', () => {
  const given = parsed('--watch-cache=false', '--kubelet-timeout', '5s', '--allow-privileged=true');
  assert.deepEqual(unusedApiserverFlags(given), ['kubelet-timeout', 'watch-cache']);
  assert.equal(refusedApiserverFlag(given), null);
  const refusal = (word: string): string => refusedApiserverFlag(parsed(word)) ?? '';
  assert.match(refusal('--authorization-policy-file=p.csv'), /^--authorization-policy-file: ABAC/);
  assert.match(refusal('--service-account-signing-endpoint=/x.sock'), /^--service-account-signing/);
  assert.match(refusal('--storage-backend=etcd2'), /etcd2 is not offered; the only one is etcd3/);
  assert.equal(refusal('--storage-backend=etcd3'), '');
});

test('flags for serving come to what the server takes', () => {
  const flags = flagsOf(
    ...['--cert-dir=/c', '--tls-min-version=VersionTLS13', '--tls-curve-preferences=29,23'],
    ...['--tls-cipher-suites=TLS_AES_128_GCM_SHA256', '--external-hostname=api.example'],
    ...['--tls-sni-cert-key=a.crt,a.key:x.example', '--tls-sni-cert-key', 'b.crt,b.key'],
    ...['--service-account-max-token-expiration=2h', '--profiling=false'],
  );
  const { dataDir, tlsMinVersion, tlsCurvePreferences, tlsSniCertKey, ...rest } = optionsOf(flags);
  assert.equal(dataDir, '/c/megaplane-data');
  assert.equal(tlsMinVersion, 'TLSv1.3');
  assert.deepEqual(tlsCurvePreferences, ['X25519', 'P-256']);
  assert.deepEqual(tlsSniCertKey, ['a.crt,a.key:x.example', 'b.crt,b.key']);
  assert.equal(rest.serviceAccountMaxTokenExpiration, 7_200_000);
  assert.deepEqual([rest.externalHostname, rest.profiling], ['api.example', false]);
  assert.equal(optionsOf(flagsOf('--data-dir=/d', '--cert-dir=/c')).dataDir, '/d');
  assert.equal(optionsOf(flagsOf()).dataDir, './megaplane-data');
});

test('what makes no sense is refused, and what is unknown', () => {
  const refused = (word: string, why: RegExp): void => assert.throws(() => flagsOf(word), why);
  refused('--tls-min-version=1.2', /one of VersionTLS10/);
  refused('--tls-curve-preferences=1', /1 is none of the curves/);
  refused('--tls-sni-cert-key=a.crt', /a certificate and a key are needed/);
  refused('--service-account-max-token-expiration=1m', /1h or longer/);
  refused('--http2-max-streams-per-connection=-1', /between 0/);
  refused('--cert-dir=', /a path is needed/);
  refused('--no-such-flag', /unknown option '--no-such-flag'/);
});

test('the version is told as kube-apiserver tells it', () => {
  assert.equal(versionText(true), 'Kubernetes v1.36.1\n');
  assert.equal(versionText('raw'), 'Kubernetes v1.36.1\n');
  assert.equal(versionText(undefined), null);
  assert.equal(versionText('false'), null);
  assert.throws(() => versionText('v9'), /--version: v9 is none of/);
});
