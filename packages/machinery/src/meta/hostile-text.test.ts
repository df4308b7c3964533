/** Text of users may have megabytes: what reads it takes time by its length, not by its square. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDurationMs } from '@megaplane/base/limits';
import { celEnvironment, compileCel } from '../cel/program.ts';
import { STRING } from '../cel/values/typing.ts';
import { parseCronFields } from './cron-fields.ts';
import { formatCheck } from '../structural/schema/formats.ts';
import { parseQuantity } from './quantity.ts';
import { durationFault, parseDuration } from './times.ts';

const LENGTH = 100_000;
/** Of processor time; by the square of the length it is many times as much. */
const READ_MS_MAX = 1500;
const UNITS = ['0', '9', 'a', ' ', '.', '-', '/', '=', '%', '\\', '@', ':', '1.', 'a-', 'a.', '1s'];
const ENDS = ['', '!', '\n', 's', 's!', '@b'];
const FORMATS =
  'bsonobjectid uri email hostname ipv4 ipv6 cidr mac uuid uuid3 uuid4 uuid5 isbn isbn10 isbn13 ' +
  'creditcard ssn hexcolor rgbcolor byte password date duration datetime ' +
  'k8s-short-name k8s-long-name';
const EXPRESSIONS =
  'double(s) > 0.0|int(s) > 0|uint(s) > 0u|bool(s)|duration(s) > duration("1s")|s.trim() == ""|' +
  'timestamp(s) > timestamp("2020-01-01T00:00:00Z")|isQuantity(s)|isURL(s)|isIP(s)|isCIDR(s)|' +
  'isSemver(s)|isSemver(s, true)|s.lowerAscii() == ""|s.split(",").size() > 1|' +
  's.replace("a", "b") == ""|bytes(s) == b""|format.dns1123Subdomain().validate(s).hasValue()|' +
  'format.qualifiedName().validate(s).hasValue()|format.uri().validate(s).hasValue()|' +
  'format.labelValue().validate(s).hasValue()|format.byte().validate(s).hasValue()|' +
  'format.datetime().validate(s).hasValue()|format.uuid().validate(s).hasValue()';

const READERS = new Map<string, (text: string) => unknown>([
  ['a quantity', parseQuantity],
  ['a duration', parseDuration],
  ['what is wrong with a duration', durationFault],
  ['a duration of a flag', parseDurationMs],
  ['a schedule', parseCronFields],
]);
for (const name of FORMATS.split(' ')) {
  const check = formatCheck(name);
  assert(check !== null, name);
  READERS.set(`the format ${name}`, check);
}
for (const source of EXPRESSIONS.split('|')) {
  const compiled = compileCel(celEnvironment({ variables: { s: STRING } }), source);
  assert(compiled.ok, source);
  READERS.set(source, (s) => compiled.program.evaluate({ s }));
}

for (const [name, read] of READERS) {
  test(`${name}: hostile text is read in time`, () => {
    for (const unit of UNITS) {
      for (const end of ENDS) {
        const before = process.cpuUsage();
        read(unit.repeat(LENGTH / unit.length) + end);
        const { user } = process.cpuUsage(before);
        assert(user / 1000 < READ_MS_MAX, `"${unit}..." and "${end}" took ${user / 1000} ms`);
      }
    }
  });
}
