import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cipherOf, KEY_SIZES, type CipherName } from './ciphers.ts';
import { openBox, sealBox } from './secretbox.ts';
import { ValueSealer } from './value-sealer.ts';

const RUNS = process.env['MEGAPLANE_LONG'] === undefined ? 50 : 5000;
const KEY = Buffer.from('0123456789abcdef0123456789abcdef');
const NAMES: readonly CipherName[] = ['aescbc', 'aesgcm', 'secretbox'];
const SECRET =
  '{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"default"},' +
  '"data":{"password":"c2VjcmV0IG9mIHNvbWUgbGVuZ3RoIHRoYXQgc3BhbnMgYmxvY2tz"}}';

/** What k8s.io/apiserver v0.33.4 sealed with KEY as key1, of `/registry/secrets/default/a`. */
const SEALED: readonly (readonly [string, string])[] = [
  ['{}', 'azhzOmVuYzphZXNjYmM6djE6a2V5MTqzBKzz+LOljXf8WNXYnC5nDIsMhvUaVbISyJL6kBthDg=='],
  [
    '0123456789abcdef',
    'azhzOmVuYzphZXNjYmM6djE6a2V5MTqAcSXdk7wZUDIp+UOP22FSansbPzgqTIdS4SQvYqcLAws7EKuk' +
      'PrVoeRXZpnMxxwA=',
  ],
  ['{}', 'azhzOmVuYzphZXNnY206djE6a2V5MTohNg1lxMLx+KEp9Qvc3Vze1wMLFWozERZx/ToKCFw='],
  [
    SECRET,
    'azhzOmVuYzphZXNnY206djE6a2V5MTrBBSWz/x2rgwCf5KxNB/LGPxKJHIpYW8h+LjTs0DB/ob6iFCMd' +
      'tZdiaQmJHxot0uz1t1BN9wUulIGreD3V037xa2/7XTGx8p9lnlIHaNUuTOvl8rN1uDQTAmQZy9Vurza6' +
      'M2EpsSmrTrEa6c3RHoV6oKtPHumbf7PnE0YeXmdhmrm6GJgDzNpnAPizxX6GNroiHD4SAMy8hrfdVP3q' +
      'lOwm1U4xajBM1tJdbBn4xeJWvt/pKXZWWtm3',
  ],
  [
    '{}',
    'azhzOmVuYzpzZWNyZXRib3g6djE6a2V5MTq2guImmgkEk+TlKxrGIHvpeEcwm6LdXsaizcbL00rXETgH' +
      'mTwVufEZ9C4=',
  ],
  [
    SECRET,
    'azhzOmVuYzpzZWNyZXRib3g6djE6a2V5MTpdxjPHqQwmJltk9WYJ1uwCM94VLZVBLeJ9OyJ2ZECuLter' +
      '+VgALUr9OXWCLwYZ4TXcfYmeT9Xww93uF1yCXVpLQahqpvCvWm6Fe0G3925IVgO0cKIG6Pi0p6hhu0hs' +
      'LvtKJy8I8+3lrdMo3GZwv9K4PEGxvs2DSihNj3Gu0XbqQkW4tz7ScrR/60u2PuQJvJbSLg4t0iZWRbm7' +
      'p2Eftp/J4omugvl7bs9OXKFyiBKqiLyLTXWmveFX/jOxo4nG/WM62pMB',
  ],
];

test('what upstream sealed is opened', () => {
  const providers = NAMES.map((name) => ({
    prefix: `k8s:enc:${name}:v1:key1:`,
    cipher: cipherOf(name, KEY),
  }));
  const sealer = new ValueSealer([{ resources: ['secrets'], providers }]);
  const key = '/registry/secrets/default/a';
  for (const [text, sealed] of SEALED) {
    const { value, seal } = sealer.open(key, Buffer.from(key), Buffer.from(sealed, 'base64'));
    assert.equal(value.toString(), text, seal);
  }
});

test('the box of NaCl’s own example', () => {
  const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');
  const key = hex('1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389');
  const nonce = hex('69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37');
  const message = hex(
    'be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d4' +
      '5e6c61296cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a' +
      '024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f937763848645e0705',
  );
  const box = sealBox(message, nonce, key);
  const tag = 'f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4';
  assert.equal(box.toString('hex', 0, 40), tag);
  assert.deepEqual(openBox(box, nonce, key), message);
});

test('each cipher opens what it sealed, with that key and nothing changed only', () => {
  const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
  for (const name of NAMES) {
    for (const size of KEY_SIZES[name]) {
      const cipher = cipherOf(name, KEY.subarray(0, size));
      const other = cipherOf(name, Buffer.alloc(size, 7));
      fc.assert(
        fc.property(bytes, bytes, fc.nat(), (value, context, flip) => {
          const sealed = cipher.seal(value, context);
          assert.deepEqual(cipher.open(sealed, context), value);
          if (name === 'aescbc') return;
          assert.equal(other.open(sealed, context), null);
          const at = flip % sealed.length;
          sealed[at] = (sealed[at] ?? 0) ^ 1;
          assert.equal(cipher.open(sealed, context), null);
          if (name === 'aesgcm') {
            sealed[at] = (sealed[at] ?? 0) ^ 1;
            assert.equal(cipher.open(sealed, Buffer.concat([context, KEY])), null);
          }
        }),
        { numRuns: RUNS },
      );
      for (const cut of [0, 1, 15, 16, 17, 31]) {
        assert.equal(cipher.open(Buffer.alloc(cut), Buffer.alloc(0)), null);
      }
    }
  }
});
