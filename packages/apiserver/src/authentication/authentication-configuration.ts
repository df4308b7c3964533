/**
 * `AuthenticationConfiguration` of apiserver.config.k8s.io: whose tokens are taken, and which paths
 * anybody may ask for. Findings have upstream's words and paths.
 */
import { X509Certificate } from 'node:crypto';
import type { Program } from '@megaplane/machinery/cel/program';
import {
  aggregate,
  duplicate,
  fieldErrorText,
  invalidValue,
  required,
  tooMany,
  type FieldError,
} from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt, valueAt } from '@megaplane/machinery/json';
import { isObject, type JsonValue } from '@megaplane/machinery/json-value';
import { SIGNING_ALGORITHMS } from './jwt.ts';
import { readClaimRules, readMappings, readUserRules } from './claim-mappings.ts';
import type { JwtIssuer } from './jwt-authenticator.ts';

export interface AuthenticationConfiguration {
  readonly issuers: readonly JwtIssuer[];
  /** Null: the file says nothing of it. */
  readonly anonymous: AnonymousRule | null;
}

/** Requests without a credential: all, none, or those for certain paths. */
export interface AnonymousRule {
  readonly isEnabled: boolean;
  readonly paths: readonly string[];
}

const VERSIONS: ReadonlySet<string> = new Set(
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`),
);
const ISSUERS_MAX = 64;
const DISCOVERY_PATH = '/.well-known/openid-configuration';

type Findings = FieldError[];

/** Reads a configuration. Throws an Error with all findings. */
export function readAuthenticationConfiguration(
  value: JsonValue,
  ownIssuers: readonly string[],
): AuthenticationConfiguration {
  if (!isObject(value)) throw new Error('the file holds no object');
  const [kind, version] = [stringAt(value, 'kind'), stringAt(value, 'apiVersion')];
  if (kind !== 'AuthenticationConfiguration' || !VERSIONS.has(version)) {
    throw new Error(
      `it is of ${version}, ${kind}, not of apiserver.config.k8s.io/v1, ` +
        'AuthenticationConfiguration',
    );
  }
  const findings: Findings = [];
  const given = listAt(value, 'jwt');
  if (given.length > ISSUERS_MAX) findings.push(tooMany('jwt', given.length, ISSUERS_MAX));
  const seen = { urls: new Set<string>(), discoveries: new Set<string>() };
  const issuers = given.map((one, index) =>
    readIssuer(one, `jwt[${index}]`, ownIssuers, seen, findings),
  );
  const anonymous = readAnonymous(value, findings);
  if (findings.length > 0) throw new Error(aggregate(findings.map(fieldErrorText)));
  return { issuers, anonymous };
}

function readAnonymous(value: JsonValue, findings: Findings): AnonymousRule | null {
  const rule = objectAt(value, 'anonymous');
  if (rule === undefined) return null;
  const isEnabled = rule['enabled'] === true;
  const paths = listAt(rule, 'conditions').map((one) => stringAt(one, 'path'));
  if (!isEnabled && paths.length > 0) {
    const text = 'enabled should be set to true when conditions are defined';
    findings.push(invalidValue('anonymous.conditions', valueAt(rule, 'conditions'), text));
  }
  return { isEnabled, paths };
}

interface Seen {
  readonly urls: Set<string>;
  readonly discoveries: Set<string>;
}

function readIssuer(
  one: JsonValue,
  path: string,
  ownIssuers: readonly string[],
  seen: Seen,
  findings: Findings,
): JwtIssuer {
  const issuer = objectAt(one, 'issuer') ?? {};
  const url = stringAt(issuer, 'url');
  const discovery = stringAt(issuer, 'discoveryURL');
  const at = `${path}.issuer`;
  if (url === '') findings.push(required(`${at}.url`));
  else checkUrl(url, `${at}.url`, ownIssuers, findings);
  if (discovery !== '') {
    if (url !== '' && trimmed(url) === trimmed(discovery)) {
      const text = 'discoveryURL must be different from URL';
      findings.push(invalidValue(`${at}.discoveryURL`, discovery, text));
    }
    checkUrl(discovery, `${at}.discoveryURL`, [], findings);
  }
  const audiences = readAudiences(issuer, at, findings);
  const certificateAuthority = stringAt(issuer, 'certificateAuthority');
  checkAuthority(certificateAuthority, `${at}.certificateAuthority`, findings);
  const read: JwtIssuer = {
    url,
    discoveryUrl: discovery === '' ? trimmed(url) + DISCOVERY_PATH : discovery,
    audiences,
    certificateAuthority,
    algorithms: SIGNING_ALGORITHMS,
    claimRules: readClaimRules(one, `${path}.claimValidationRules`, findings),
    ...readMappings(one, `${path}.claimMappings`, findings),
    userRules: readUserRules(one, `${path}.userValidationRules`, findings),
  };
  checkAddresses(read, path, findings);
  if (seen.urls.has(url)) findings.push(duplicate(`${at}.url`, url));
  seen.urls.add(url);
  if (discovery === '') return read;
  if (seen.discoveries.has(discovery)) findings.push(duplicate(`${at}.discoveryURL`, discovery));
  seen.discoveries.add(discovery);
  return read;
}

function trimmed(url: string): string {
  return url.replace(/\/+$/, '');
}

function checkUrl(
  url: string,
  path: string,
  disallowed: readonly string[],
  findings: Findings,
): void {
  if (disallowed.includes(url)) {
    const text = `URL must not overlap with disallowed issuers: [${disallowed.join(' ')}]`;
    findings.push(invalidValue(path, url, text));
  }
  const parsed = URL.parse(url);
  if (parsed === null || parsed.protocol !== 'https:') {
    findings.push(invalidValue(path, url, 'URL scheme must be https'));
  }
  if (parsed === null) return;
  if (parsed.username !== '' || parsed.password !== '') {
    findings.push(invalidValue(path, url, 'URL must not contain a username or password'));
  }
  if (parsed.search !== '') {
    findings.push(invalidValue(path, url, 'URL must not contain a query'));
  }
  if (parsed.hash !== '') {
    findings.push(invalidValue(path, url, 'URL must not contain a fragment'));
  }
}

function readAudiences(issuer: JsonValue, path: string, findings: Findings): string[] {
  const field = `${path}.audiences`;
  const policy = stringAt(issuer, 'audienceMatchPolicy');
  const audiences = listAt(issuer, 'audiences').map(String);
  if (audiences.length === 0) {
    findings.push(required(field, `at least one ${field} is required`));
    return audiences;
  }
  for (const [index, audience] of audiences.entries()) {
    if (audience === '') findings.push(required(`${field}[${index}]`));
    if (audiences.indexOf(audience) < index) {
      findings.push(duplicate(`${field}[${index}]`, audience));
    }
  }
  const at = `${path}.audienceMatchPolicy`;
  if (audiences.length > 1 && policy !== 'MatchAny') {
    const text = 'audienceMatchPolicy must be MatchAny for multiple audiences';
    findings.push(invalidValue(at, policy, text));
  }
  if (audiences.length === 1 && policy !== '' && policy !== 'MatchAny') {
    const text = 'audienceMatchPolicy must be empty or MatchAny for single audience';
    findings.push(invalidValue(at, policy, text));
  }
  return audiences;
}

function checkAuthority(pem: string, path: string, findings: Findings): void {
  if (pem === '') return;
  try {
    void new X509Certificate(pem);
  } catch {
    const text = 'data does not contain any valid RSA or ECDSA certificates';
    findings.push(invalidValue(path, '<omitted>', text));
  }
}

/** Whoever is known by an email must look at whether it was verified. */
function checkAddresses(issuer: JwtIssuer, path: string, findings: Findings): void {
  const { username } = issuer;
  if (username.kind !== 'expression' || !names(username.program, 'email')) return;
  const programs = [
    username.program,
    ...issuer.extra.map(({ program }) => program),
    ...issuer.claimRules.flatMap((rule) => (rule.kind === 'expression' ? [rule.program] : [])),
  ];
  if (programs.some((program) => names(program, 'email_verified'))) return;
  findings.push(
    invalidValue(
      `${path}.claimMappings.username.expression`,
      username.program.source,
      'claims.email_verified must be used in claimMappings.username.expression or ' +
        'claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when ' +
        'claims.email is used in claimMappings.username.expression',
    ),
  );
}

function names({ source }: Program, claim: string): boolean {
  return new RegExp(String.raw`\bclaims\s*\.\s*\??\s*${claim}\b`).test(source);
}
