import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cronFault } from './cron-fields.ts';

test('schedules are refused in the words of the parser that upstream uses', () => {
  const fine = [
    '*/5 0-6/2,? 1 jan-MAR sun',
    '@every 1h30m',
    '@daily',
    ' 0 0 1,,2 * * ',
    '3/9 * * * *',
  ];
  for (const text of fine) assert.equal(cronFault(text), '', text);
  const faults: Readonly<Record<string, string>> = {
    '60 * * * *': 'end of range (60) above maximum (59): 60',
    '* * 0 * *': 'beginning of range (0) below minimum (1): 0',
    '5-1 * * * *': 'beginning of range (5) beyond end of range (1): 5-1',
    '*/0 * * * *': 'step of range should be a positive number: */0',
    '1-2-3 * * * *': 'too many hyphens: 1-2-3',
    '1/2/3 * * * *': 'too many slashes: 1/2/3',
    '* * * * 7': 'end of range (7) above maximum (6): 7',
    'jan * * * *': 'failed to parse int from jan: strconv.Atoi: parsing "jan": invalid syntax',
    '* * *': 'expected exactly 5 fields, found 3: [* * *]',
    '@often': 'unrecognized descriptor: @often',
    '@every 1x': 'failed to parse duration @every 1x: time: unknown unit "x" in duration "1x"',
    '@every 5': 'failed to parse duration @every 5: time: missing unit in duration "5"',
    '@every x': 'failed to parse duration @every x: time: invalid duration "x"',
  };
  for (const [text, fault] of Object.entries(faults)) assert.equal(cronFault(text), fault);
});
