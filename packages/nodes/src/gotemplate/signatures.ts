/**
 * What sprig's and kwok's functions take. Go's templates call a function only with values of the
 * types that it declares: a number of the object is no text, and what is missing is neither.
 *
 * One letter for each argument, after `*` any number of them: `s` string, `i` int, `b` bool,
 * `m` map, `t` time, `a` anything.
 */
import { ownMember, putMember } from '@megaplane/base/members';
import { GoTime } from './go-time.ts';
import { isMap, typeName, type GoValue } from './go-values.ts';
import type { TemplateFunction, TemplateFunctions } from './template-run.ts';

const SIGNATURES: Readonly<Record<string, string>> = {
  s: [
    'adler32sum atoi b32dec b32enc b64dec b64enc base camelcase clean dir ext fail fromJson',
    'initials isAbs kebabcase lower mustFromJson nospace osBase osClean osDir osExt osIsAbs',
    'regexQuoteMeta sha1sum sha256sum sha512sum shuffle snakecase swapcase title trim untitle',
    'upper urlParse NodeIPWith NodeIPsWith',
  ].join(' '),
  ss: [
    'contains hasPrefix hasSuffix mustRegexFind mustRegexMatch mustToDate regexFind regexMatch',
    'semverCompare split splitList toDate trimAll trimPrefix trimSuffix trimall',
  ].join(' '),
  sss: [
    'mustRegexReplaceAll mustRegexReplaceAllLiteral regexReplaceAll regexReplaceAllLiteral replace',
  ].join(' '),
  ssi: 'mustRegexFindAll mustRegexSplit plural regexFindAll regexSplit',
  sa: 'date join kindIs typeIs typeIsLike',
  sas: 'dateInZone date_in_zone',
  st: 'dateModify date_modify mustDateModify must_date_modify',
  sis: 'splitn',
  sbsss: 'PodIPWith PodIPsWith',
  is: 'abbrev indent nindent repeat trunc wrap',
  iis: 'abbrevboth substr',
  iss: 'wrapWith',
  ia: 'chunk mustChunk',
  i: 'randAlpha randAlphaNum randAscii randBytes randNumeric until',
  ii: 'randInt',
  iii: 'untilStep',
  '*i': 'seq',
  m: 'urlJoin values',
  ms: 'get hasKey unset',
  msa: 'set',
  'm*m': 'merge mergeOverwrite mustMerge mustMergeOverwrite',
  'm*s': 'omit pick',
  's*m': 'pluck',
  '*m': 'keys',
  t: 'unixEpoch',
  aab: 'ternary',
  as: 'htmlDateInZone',
  aa: [
    'ne lt le gt ge',
    'append deepEqual div has mod mustAppend mustHas mustPrepend mustPush prepend push sub',
  ].join(' '),
  a: [
    'not len add1 add1f ago ceil compact deepCopy duration durationRound empty first float64 floor',
    'htmlDate initial int int64 kindOf last mustCompact mustDeepCopy mustFirst mustInitial',
    'mustLast mustRest mustReverse mustToJson mustToPrettyJson mustToRawJson mustUniq rest reverse',
    'sortAlpha toDecimal toJson toPrettyJson toRawJson toString toStrings typeOf uniq Quote',
  ].join(' '),
  'a*a': [
    'eq index',
    'biggest default divf max maxf min minf mul mulf mustSlice mustWithout slice subf without',
  ].join(' '),
  'ai*a': 'round',
  'a*i': 'YAML',
  '': 'now hello uuidv4 Now StartTime Version NodeConditions NodeIP NodeName NodePort',
};

const TYPES: Readonly<Record<string, string>> = {
  s: 'string',
  i: 'int',
  b: 'bool',
  m: 'map[string]interface {}',
  t: 'time.Time',
};

function isOf(type: string, value: GoValue): boolean {
  switch (type) {
    case 's':
      return typeof value === 'string';
    case 'i':
      return typeof value === 'bigint';
    case 'b':
      return typeof value === 'boolean';
    case 'm':
      return isMap(value) || value === undefined || value === null;
    case 't':
      return value instanceof GoTime;
    default:
      return true;
  }
}

/** The functions, each of which refuses what its namesake in Go refuses. */
export function withSignatures(functions: TemplateFunctions): TemplateFunctions {
  const checked: Record<string, TemplateFunction> = { ...functions };
  for (const [signature, names] of Object.entries(SIGNATURES)) {
    for (const name of names.split(' ')) {
      const own = ownMember(functions, name);
      if (own !== undefined) putMember(checked, name, withSignature(name, signature, own));
    }
  }
  return checked;
}

function withSignature(name: string, signature: string, own: TemplateFunction): TemplateFunction {
  const [fixed = '', rest] = signature.split('*');
  return (...args) => {
    const isTooMany = rest === undefined && args.length > fixed.length;
    if (args.length < fixed.length || isTooMany) {
      const least = rest === undefined ? '' : 'at least ';
      const want = `want ${least}${fixed.length} got ${args.length}`;
      throw new Error(`wrong number of args for ${name}: ${want}`);
    }
    for (const [at, value] of args.entries()) {
      const type = fixed[at] ?? rest ?? '';
      if (isOf(type, value)) continue;
      const wanted = ownMember(TYPES, type) ?? '';
      const isNone = value === undefined || value === null;
      if (isNone) throw new Error(`invalid value; expected ${wanted}`);
      throw new Error(`wrong type for value; expected ${wanted}; got ${typeName(value)}`);
    }
    return own(...args);
  };
}
