import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkWebFlags } from './web-fields.ts';

const origins =
  (...corsAllowedOrigins: string[]) =>
  () =>
    checkWebFlags({ corsAllowedOrigins });
const strict =
  (...strictTransportSecurityDirectives: string[]) =>
  () => {
    checkWebFlags({ strictTransportSecurityDirectives });
  };

test('an origin must be pinned at both ends of its host, and a directive be known', () => {
  assert.doesNotThrow(origins(String.raw`^https://a\.example$`, String.raw`//b\.example(:|$)`));
  assert.throws(origins('a.example'), /does not pin/);
  assert.throws(origins('https://a.example'), /does not pin/);
  assert.throws(origins('^a('), /--cors-allowed-origins has an invalid regular expression/);
  assert.doesNotThrow(strict('max-age=31536000', 'includeSubDomains', 'preload'));
  assert.throws(strict('max-age=never'), /--strict-transport-security-directives: max-age=never/);
});
