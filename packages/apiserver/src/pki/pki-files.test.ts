import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openPki } from './pki-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'megaplane-pki-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const NOW_MS = Date.UTC(2026, 0, 1);
const files = ['ca.crt', 'ca.key', 'sa.key'].map((name) => join(folder, 'pki', name));
const [certificate = '', key = '', tokenKey = ''] = files;

test('an authority is made once; a broken one is told of and never replaced', async () => {
  const made = openPki(folder, [], NOW_MS);
  await made.tokenKey;
  assert.equal(openPki(folder, [], NOW_MS).authority.certificate, made.authority.certificate);
  for (const file of files) copyFileSync(file, `${file}.kept`);
  const refuses = (file: string, text: string | null, message: RegExp): void => {
    if (text === null) rmSync(file);
    else writeFileSync(file, text);
    const before = readFileSync(certificate, 'utf8');
    assert.throws(() => openPki(folder, [], NOW_MS), message);
    assert.equal(readFileSync(certificate, 'utf8'), before, 'what is there stays');
    copyFileSync(`${file}.kept`, file);
  };
  refuses(certificate, 'notes', /ca\.crt holds no certificate; restore it from a backup/);
  refuses(key, '', /ca\.key holds no private key/);
  refuses(key, null, /cannot read .*ca\.key \(ENOENT\)/);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const other = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  refuses(key, other, /ca\.key is not the key of .*ca\.crt/);
  openPki(folder, [], NOW_MS);
});

test('a broken key of tokens is told of', async () => {
  await openPki(folder, [], NOW_MS).tokenKey;
  writeFileSync(tokenKey, 'notes');
  await assert.rejects(openPki(folder, [], NOW_MS).tokenKey, /sa\.key holds no private key/);
});

test('a file where the folder should be is told of', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  assert.throws(() => openPki(file, [], NOW_MS), /--data-dir: cannot make the directory .*file/);
});
