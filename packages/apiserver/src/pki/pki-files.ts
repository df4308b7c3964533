// shell: keys and certificates in the data directory
/**
 * The cluster's own authority and what it signs. The authority is made once and kept; serving and
 * client certificates are made anew at each start, so they follow the machine's names and never
 * run out while the cluster lives.
 */
import { createPrivateKey, generateKeyPair, randomBytes, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  makePrivateDirectory,
  OpenDirectory,
  replacePrivately,
} from '@megaplane/base/private-file';
import {
  issueCertificate,
  type CertificateRequest,
  type KeyAndCertificate,
} from './certificates.ts';
import { CONTROLLERS_GROUP, NODES_GROUP } from '../authorization/component-grants.ts';
import { MASTERS_GROUP } from '../request/identity.ts';
import { kubeconfigText } from './kubeconfig-file.ts';

const DAY_MS = 86_400_000;
const AUTHORITY_MS = 3650 * DAY_MS;
const LEAF_MS = 365 * DAY_MS;
/** Clocks of clients may be behind by this much. */
const BACKDATE_MS = 5 * 60_000;
const TOKEN_KEY_BITS = 2048;
const generate = promisify(generateKeyPair);

/** Files and who is in them: the administrator, and the programs of `up`. */
const CLIENTS = [
  { file: 'kubeconfig', user: 'kubernetes-admin', groups: [MASTERS_GROUP] },
  { file: 'scheduler.kubeconfig', user: 'system:kube-scheduler', groups: [] },
  // kube-controller-manager acts as an account for each controller; ours are one program
  {
    file: 'controllers.kubeconfig',
    user: 'system:kube-controller-manager',
    groups: [CONTROLLERS_GROUP],
  },
  // the first group gives their requests the priority that those of kubelets have
  { file: 'nodes.kubeconfig', user: 'megaplane-nodes', groups: ['system:nodes', NODES_GROUP] },
] as const;

/** Name of the front proxy in its certificate. */
export const FRONT_PROXY_NAME = 'front-proxy-client';

export interface Pki {
  readonly authority: KeyAndCertificate;
  readonly serving: KeyAndCertificate;
  /** Shown to kubelets, where the flags name no other. */
  readonly kubeletClient: KeyAndCertificate;
  /** Shown to API servers behind this one, with an authority of its own. */
  readonly frontProxy: KeyAndCertificate;
  readonly frontProxyAuthority: string;
  /**
   * PEM of the private key that signs service account tokens; a new one takes a while. Empty where
   * tokens are signed by another.
   */
  readonly tokenKey: Promise<string>;
}

/**
 * Reads or makes the authority, and makes a serving certificate for `names`. A key for tokens is
 * made only where none is named by flags: that takes longer than all the rest of a start.
 */
export function openPki(
  dataDir: string,
  names: readonly string[],
  nowMs: number,
  signsTokens = true,
): Pki {
  const dir = join(dataDir, 'pki');
  makeKeyDirectory(dir);
  const authority = authorityOf(dir, 'ca', 'megaplane-ca', nowMs);
  // who holds a certificate of this authority may name any user: it signs nothing else
  const proxyAuthority = authorityOf(dir, 'front-proxy-ca', 'megaplane-front-proxy-ca', nowMs);
  const serving = issue(
    {
      commonName: 'kube-apiserver',
      use: 'server',
      names: [...new Set([...NAMES, hostname(), ...names])],
    },
    authority,
    nowMs,
    LEAF_MS,
  );
  const client = {
    commonName: 'kube-apiserver-kubelet-client',
    use: 'client',
    organizations: [MASTERS_GROUP],
  } as const;
  const kubeletClient = issue(client, authority, nowMs, LEAF_MS);
  const proxy = { commonName: FRONT_PROXY_NAME, use: 'client' } as const;
  const frontProxy = issue(proxy, proxyAuthority, nowMs, LEAF_MS);
  const tokenKey = signsTokens ? tokenKeyOf(dir) : Promise.resolve('');
  // who awaits the key is told; a start that fails for another reason must not fail twice
  tokenKey.catch(() => undefined);
  const frontProxyAuthority = proxyAuthority.certificate;
  return { authority, serving, kubeletClient, frontProxy, frontProxyAuthority, tokenKey };
}

/** Of the store as etcd: whoever has a certificate of this authority reads and writes all of it. */
export interface StorePki {
  readonly authority: KeyAndCertificate;
  readonly serving: KeyAndCertificate;
}

/**
 * Reads or makes the authority of the store's clients, which is not the cluster's: a kubelet's
 * certificate opens no store. For people and programs that may, `pki/store-client.crt` and `.key`
 * are made, and `pki/store-ca.crt` tells whom to trust.
 */
export function openStorePki(dataDir: string, names: readonly string[], nowMs: number): StorePki {
  const dir = join(dataDir, 'pki');
  makeKeyDirectory(dir);
  const authority = authorityOf(dir, 'store-ca', 'megaplane-store-ca', nowMs);
  const own = [...new Set([...NAMES, hostname(), ...names])];
  const server = { commonName: 'megaplane-store', use: 'server', names: own } as const;
  const serving = issue(server, authority, nowMs, LEAF_MS);
  const client = { commonName: 'megaplane-store-client', use: 'client' } as const;
  const credential = issue(client, authority, nowMs, LEAF_MS);
  writePrivate(join(dir, 'store-client.key'), credential.key);
  writePrivate(join(dir, 'store-client.crt'), credential.certificate);
  return { authority, serving };
}

const NAMES = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
  '127.0.0.1',
  '::1',
] as const;

function authorityOf(
  dir: string,
  file: string,
  commonName: string,
  nowMs: number,
): KeyAndCertificate {
  const certificateFile = join(dir, `${file}.crt`);
  const keyFile = join(dir, `${file}.key`);
  if (existsSync(certificateFile)) return readAuthority(certificateFile, keyFile);
  const request = { commonName, use: 'authority' } as const;
  const authority = issue(request, null, nowMs, AUTHORITY_MS);
  // the key first: a certificate without its key could never be used again
  writePrivate(keyFile, authority.key);
  writePrivate(certificateFile, authority.certificate);
  return authority;
}

/**
 * Throws where a file is missing or broken: an authority made in its place would shut out everybody
 * who has a kubeconfig of the old one, and nobody would know why.
 */
function readAuthority(certificateFile: string, keyFile: string): KeyAndCertificate {
  const advice =
    `restore it from a backup, or remove ${certificateFile} and ${keyFile}: then new ones are ` +
    'made, and copies of kubeconfigs made before are refused';
  const [certificate, key] = [certificateFile, keyFile].map((file) => {
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      throw new Error(`cannot read ${file} (${codeOf(error)}); ${advice}`, { cause: error });
    }
  });
  const pair = { certificate: certificate ?? '', key: key ?? '' };
  const what = faultOf(pair, certificateFile, keyFile);
  if (what !== null) throw new Error(`${what}; ${advice}`);
  return pair;
}

function faultOf(pair: KeyAndCertificate, certificateFile: string, keyFile: string): string | null {
  const parsed = parsedOr(() => new X509Certificate(pair.certificate));
  if (parsed === null) return `${certificateFile} holds no certificate`;
  const key = parsedOr(() => createPrivateKey(pair.key));
  if (key === null) return `${keyFile} holds no private key`;
  return parsed.checkPrivateKey(key) ? null : `${keyFile} is not the key of ${certificateFile}`;
}

function parsedOr<Parsed>(parse: () => Parsed): Parsed | null {
  try {
    return parse();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    return null;
  }
}

function codeOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? String(error);
  return code === 'ENOSPC' ? 'the disk is full: free space on it' : code;
}

function makeKeyDirectory(dir: string): void {
  try {
    makePrivateDirectory(dir);
  } catch (error) {
    if (error instanceof OpenDirectory)
      throw new Error(`--data-dir: ${error.message}`, { cause: error });
    throw new Error(`--data-dir: cannot make the directory ${dir} (${codeOf(error)})`, {
      cause: error,
    });
  }
}

async function tokenKeyOf(dir: string): Promise<string> {
  const file = join(dir, 'sa.key');
  if (existsSync(file)) return readTokenKey(file);
  // RSA, as verifiers of tokens outside of the cluster expect it
  const { privateKey } = await generate('rsa', { modulusLength: TOKEN_KEY_BITS });
  const text = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  writePrivate(file, text);
  return text;
}

function readTokenKey(file: string): string {
  const text = readFileSync(file, 'utf8');
  if (parsedOr(() => createPrivateKey(text)) !== null) return text;
  throw new Error(
    `${file} holds no private key; restore it from a backup, or remove it: then a new one is ` +
      'made, and tokens of service accounts made before are refused',
  );
}

function issue(
  request: Pick<CertificateRequest, 'commonName' | 'use' | 'names' | 'organizations'>,
  issuer: KeyAndCertificate | null,
  nowMs: number,
  lifeMs: number,
): KeyAndCertificate {
  const times = { notBeforeMs: nowMs - BACKDATE_MS, notAfterMs: nowMs + lifeMs };
  return issueCertificate({ ...request, ...times, serial: randomBytes(16) }, issuer);
}

/** Writes the kubeconfigs of the administrator and of the programs, readable by the owner alone. */
export function writeKubeconfigs(
  dataDir: string,
  server: string,
  authority: KeyAndCertificate,
  nowMs: number,
): void {
  for (const { file, user, groups } of CLIENTS) {
    const request = { commonName: user, use: 'client', organizations: groups } as const;
    const credential = issue(request, authority, nowMs, LEAF_MS);
    const facts = { server, authority: authority.certificate, user, credential };
    writePrivate(join(dataDir, file), kubeconfigText(facts));
  }
}

/** In one step, so that a reader never sees half a file. */
function writePrivate(file: string, text: string): void {
  try {
    replacePrivately(file, text);
  } catch (error) {
    throw new Error(`--data-dir: cannot write ${file} (${codeOf(error)})`, { cause: error });
  }
}
