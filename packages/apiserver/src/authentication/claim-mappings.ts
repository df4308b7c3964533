/**
 * The parts of an AuthenticationConfiguration that say how claims become a user, and which rules
 * claims and users must satisfy.
 */
import { ownMember } from '@megaplane/base/members';
import { compileCel, failureText, type Program } from '@megaplane/machinery/cel/program';
import {
  duplicate,
  invalidValue,
  required,
  type FieldError,
} from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import type { JsonValue } from '@megaplane/machinery/json-value';
import type { ClaimRule, ClaimSource, JwtIssuer } from './jwt-authenticator.ts';
import { CLAIMS_ENVIRONMENT, USER_ENVIRONMENT } from './jwt-environment.ts';
import type { Environment } from '@megaplane/machinery/environment';

type Findings = FieldError[];

/** `claimValidationRules`: what a token must say. */
export function readClaimRules(one: JsonValue, path: string, findings: Findings): ClaimRule[] {
  const seen = { claims: new Set<string>(), expressions: new Set<string>() };
  return listAt(one, 'claimValidationRules').flatMap((rule, index): ClaimRule[] => {
    const at = `${path}[${index}]`;
    const [claim, expression] = [stringAt(rule, 'claim'), stringAt(rule, 'expression')];
    const [message, value] = [stringAt(rule, 'message'), stringAt(rule, 'requiredValue')];
    if (claim !== '' && expression !== '') {
      findings.push(invalidValue(at, claim, "claim and expression can't both be set"));
    } else if (claim === '' && expression === '') {
      findings.push(required(at, 'claim or expression is required'));
    } else if (claim !== '') {
      const text = 'may not be specified when claim is set';
      if (message !== '') findings.push(invalidValue(`${at}.message`, message, text));
      if (seen.claims.has(claim)) findings.push(duplicate(`${at}.claim`, claim));
      seen.claims.add(claim);
      return [{ kind: 'claim', claim, value }];
    } else {
      const text = 'may not be specified when expression is set';
      if (value !== '') findings.push(invalidValue(`${at}.requiredValue`, value, text));
      const field = `${at}.expression`;
      const program = once(expression, field, seen.expressions, findings, BOOLEAN);
      if (program !== null) return [{ kind: 'expression', program, message }];
    }
    return [];
  });
}

/** `userValidationRules`: what the user that came of it must be. */
export function readUserRules(
  one: JsonValue,
  path: string,
  findings: Findings,
): JwtIssuer['userRules'] {
  const seen = new Set<string>();
  return listAt(one, 'userValidationRules').flatMap((rule, index) => {
    const field = `${path}[${index}].expression`;
    const expression = stringAt(rule, 'expression');
    if (expression === '') {
      findings.push(required(field));
      return [];
    }
    const program = once(expression, field, seen, findings, BOOLEAN, USER_ENVIRONMENT);
    return program === null ? [] : [{ program, message: stringAt(rule, 'message') }];
  });
}

/** Kinds of results, and what a finding says of another. */
interface Wanted {
  readonly kinds: readonly string[];
  readonly text: string;
}

const BOOLEAN: Wanted = { kinds: ['bool'], text: 'must evaluate to bool' };
const TEXT: Wanted = { kinds: ['string'], text: 'must evaluate to string' };
const TEXTS: Wanted = {
  kinds: ['string', 'list', 'dyn', 'null'],
  text: 'must evaluate to one of [string list(string)]',
};

function once(
  expression: string,
  path: string,
  seen: Set<string>,
  findings: Findings,
  wanted: Wanted,
  environment: Environment = CLAIMS_ENVIRONMENT,
): Program | null {
  if (seen.has(expression)) {
    findings.push(duplicate(path, expression));
    return null;
  }
  seen.add(expression);
  return compile(expression, path, findings, wanted, environment);
}

function compile(
  expression: string,
  path: string,
  findings: Findings,
  { kinds, text }: Wanted,
  environment: Environment = CLAIMS_ENVIRONMENT,
): Program | null {
  const compiled = compileCel(environment, expression);
  if (!compiled.ok) {
    findings.push(invalidValue(path, expression, failureText(compiled)));
    return null;
  }
  const { kind } = compiled.program.type;
  // what a claim holds is known when there is a token
  if (kind !== 'dyn' && !kinds.includes(kind)) {
    findings.push(invalidValue(path, expression, text));
    return null;
  }
  return compiled.program;
}

/** `claimMappings`: where name, groups, uid and the rest come from. */
export function readMappings(
  one: JsonValue,
  path: string,
  findings: Findings,
): Pick<JwtIssuer, 'username' | 'groups' | 'uid' | 'extra'> {
  const mappings = objectAt(one, 'claimMappings') ?? {};
  const source = (name: string, wanted: Wanted): ClaimSource =>
    readSource(ownMember(mappings, name) ?? null, `${path}.${name}`, findings, wanted);
  const username = source('username', TEXT);
  const hasOne =
    stringAt(mappings, 'username', 'claim') + stringAt(mappings, 'username', 'expression');
  if (hasOne === '') {
    findings.push(required(`${path}.username`, 'claim or expression is required'));
  }
  return {
    username,
    groups: source('groups', TEXTS),
    uid: readUid(mappings['uid'] ?? null, `${path}.uid`, findings),
    extra: readExtra(mappings, `${path}.extra`, findings),
  };
}

function readSource(
  mapping: JsonValue,
  path: string,
  findings: Findings,
  wanted: Wanted,
): ClaimSource {
  const [claim, expression] = [stringAt(mapping, 'claim'), stringAt(mapping, 'expression')];
  const prefix = valueAt(mapping, 'prefix');
  if (claim !== '' && expression !== '') {
    findings.push(invalidValue(path, '', "claim and expression can't both be set"));
  } else if (expression !== '') {
    const text = 'may not be specified when expression is set';
    if (typeof prefix === 'string') findings.push(invalidValue(`${path}.prefix`, prefix, text));
    const program = compile(expression, `${path}.expression`, findings, wanted);
    if (program !== null) return { kind: 'expression', program };
  } else if (claim !== '') {
    if (typeof prefix !== 'string') {
      const text =
        'prefix is required when claim is set. ' +
        'It can be set to an empty string to disable prefixing';
      findings.push(required(`${path}.prefix`, text));
    } else return { kind: 'claim', claim, prefix };
  }
  return { kind: 'none' };
}

function readUid(mapping: JsonValue, path: string, findings: Findings): ClaimSource {
  const [claim, expression] = [stringAt(mapping, 'claim'), stringAt(mapping, 'expression')];
  if (claim !== '' && expression !== '') {
    findings.push(invalidValue(path, '', "claim and expression can't both be set"));
  } else if (expression !== '') {
    const program = compile(expression, `${path}.expression`, findings, TEXT);
    if (program !== null) return { kind: 'expression', program };
  } else if (claim !== '') return { kind: 'claim', claim, prefix: '' };
  return { kind: 'none' };
}

const RESERVED = /(^|\.)(kubernetes\.io|k8s\.io)$/;

function readExtra(mappings: JsonValue, path: string, findings: Findings): JwtIssuer['extra'] {
  const seen = new Set<string>();
  return listAt(mappings, 'extra').flatMap((one, index) => {
    const at = `${path}[${index}]`;
    const [key, expression] = [stringAt(one, 'key'), stringAt(one, 'valueExpression')];
    const [domain = '', ...rest] = key.split('/');
    if (key === '') findings.push(required(`${at}.key`));
    else if (rest.join('/') === '') {
      const text = 'must be a domain-prefixed path (such as "acme.io/foo")';
      findings.push(invalidValue(`${at}.key`, key, text));
    }
    if (key !== key.toLowerCase()) {
      findings.push(invalidValue(`${at}.key`, key, 'must be lowercase'));
    }
    if (rest.length > 0 && RESERVED.test(domain)) {
      const text = 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use';
      findings.push(invalidValue(`${at}.key`, key, text));
    }
    if (seen.has(key)) {
      findings.push(duplicate(`${at}.key`, key));
      return [];
    }
    seen.add(key);
    if (expression === '') {
      findings.push(required(`${at}.valueExpression`));
      return [];
    }
    const program = compile(expression, `${at}.valueExpression`, findings, TEXTS);
    return program === null ? [] : [{ key, program }];
  });
}
