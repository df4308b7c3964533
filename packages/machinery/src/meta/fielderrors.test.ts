import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkWarning } from '../apiextensions/definition-parts.ts';
import { checkFullPartName } from '../validation/device/device-names.ts';
import { invalidValue, notSupported, notSupportedText, typedText } from './fielderrors.ts';
import { checkContainerResource } from '../validation/field/resource-names.ts';
import { checkIntOrPercent, type Findings } from '../validation/field/validation-rules.ts';
import { checkWindowsOptions } from '../validation/pod/validation-os.ts';

const ODD = 'a&b<c>\u0001';
const AS_JSON = String.raw`"a\u0026b\u003cc\u003e\u0001"`;
const AS_GO = String.raw`"a&b<c>\x01"`;

test('strings are quoted, those of types of their own and behind pointers are JSON', () => {
  const told = (check: (found: Findings) => void): string[] => {
    const found: Findings = [];
    check(found);
    return found.map(({ body }) => body.replace(/^[A-Z]\w+ value: ("(?:[^"\\]|\\.)*").*/s, '$1'));
  };
  assert.deepEqual(
    told((found) => {
      found.push(invalidValue('a', ODD, 'x'), notSupportedText('a', ODD, []));
    }),
    [AS_GO, AS_GO],
  );
  for (const check of [
    (found: Findings): void => void found.push(invalidValue('a', typedText(ODD), 'x')),
    (found: Findings): void => void found.push(notSupported('a', ODD, [])),
    (found: Findings): void => checkContainerResource(found, 'a', ODD),
    (found: Findings): void => void checkIntOrPercent(found, 'a', ODD),
    (found: Findings): void => checkWindowsOptions(found, 'a', { runAsUserName: ODD }),
    (found: Findings): void => checkWindowsOptions(found, 'a', { gmsaCredentialSpecName: ODD }),
    (found: Findings): void => checkWarning(found, { deprecationWarning: ODD }, 'a'),
  ]) {
    assert.deepEqual([...new Set(told(check))], [AS_JSON], String(check));
  }
  assert(told((found) => checkFullPartName(found, 'a', ODD)).includes(AS_JSON));
});
