// shell: reads the files that the flags name
/** The flags by which an API server reaches kubelets, as kube-apiserver has them. */
import { readFileSync } from 'node:fs';
import { SocketRelay } from './relay.ts';
import { ADDRESS_TYPES, KUBELET_PORT } from '../webhook/target.ts';
import type { UpgradeTls } from './upgrade.ts';

/** Texts as given on the command line. */
export interface KubeletOptions {
  readonly kubeletClientCertificate?: string;
  readonly kubeletClientKey?: string;
  readonly kubeletCertificateAuthority?: string;
  readonly kubeletPreferredAddressTypes?: string;
  readonly kubeletPort?: number;
  readonly proxyClientCertFile?: string;
  readonly proxyClientKeyFile?: string;
}

/** Used where the flags name none. */
export interface Credential {
  readonly certificate: string;
  readonly key: string;
}

/** How long files are taken for unchanged. */
const REREAD_MS = 10_000;

/** Throws an Error that names the flag where one makes no sense. */
export function openRelay(
  options: KubeletOptions,
  own: Credential,
  frontProxy: Credential,
): SocketRelay {
  const types = (options.kubeletPreferredAddressTypes ?? ADDRESS_TYPES.join(','))
    .split(',')
    .map((type) => type.trim())
    .filter((type) => type !== '');
  for (const type of types) {
    if (ADDRESS_TYPES.includes(type)) continue;
    throw new Error(
      `--kubelet-preferred-address-types: ${type} is none of ${ADDRESS_TYPES.join(', ')}`,
    );
  }
  const { kubeletClientCertificate, kubeletClientKey } = options;
  if ((kubeletClientCertificate === undefined) !== (kubeletClientKey === undefined)) {
    const missing = kubeletClientKey === undefined ? 'key' : 'certificate';
    throw new Error(
      `--kubelet-client-${missing} is missing: a certificate and its key belong together`,
    );
  }
  const kubelets = { addressTypes: types, port: options.kubeletPort ?? KUBELET_PORT };
  let kept = readTls(options, own);
  let readMs = performance.now();
  const kubeletTls = (): UpgradeTls => {
    if (performance.now() - readMs < REREAD_MS) return kept;
    readMs = performance.now();
    try {
      kept = readTls(options, own);
    } catch (error) {
      // a file that is being replaced: the next request reads it again
      if (!(error instanceof Error)) throw error;
    }
    return kept;
  };
  const proxyTls = readProxyTls(options, frontProxy);
  return new SocketRelay({ kubelets, kubeletTls, proxyTls: () => proxyTls });
}

function readProxyTls(
  { proxyClientCertFile, proxyClientKeyFile }: KubeletOptions,
  own: Credential,
): Pick<UpgradeTls, 'cert' | 'key'> {
  if ((proxyClientCertFile === undefined) !== (proxyClientKeyFile === undefined)) {
    const missing = proxyClientKeyFile === undefined ? 'key' : 'cert';
    throw new Error(
      `--proxy-client-${missing}-file is missing: a certificate and its key belong together`,
    );
  }
  if (proxyClientCertFile === undefined || proxyClientKeyFile === undefined) {
    return { cert: own.certificate, key: own.key };
  }
  const cert = fileOf('--proxy-client-cert-file', proxyClientCertFile);
  return { cert, key: fileOf('--proxy-client-key-file', proxyClientKeyFile) };
}

function readTls(options: KubeletOptions, own: Credential): UpgradeTls {
  const { kubeletClientCertificate, kubeletClientKey, kubeletCertificateAuthority } = options;
  const cert =
    kubeletClientCertificate === undefined
      ? own.certificate
      : fileOf('--kubelet-client-certificate', kubeletClientCertificate);
  const key =
    kubeletClientKey === undefined ? own.key : fileOf('--kubelet-client-key', kubeletClientKey);
  // as upstream: without an authority, certificates of kubelets are not looked at
  if (kubeletCertificateAuthority === undefined) return { cert, key, isInsecure: true };
  const ca = fileOf('--kubelet-certificate-authority', kubeletCertificateAuthority);
  return { ca, cert, key, isInsecure: false };
}

function fileOf(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${flag}: cannot be read (${why})`, { cause: error });
  }
}
