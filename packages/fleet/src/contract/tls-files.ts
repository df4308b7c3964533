// shell: certificates of a part of the fleet, read again when they have changed
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { ConnectTls } from '@megaplane/wire/connect';
import type { ListenTls } from '@megaplane/wire/listener';

/** Names of PEM files. */
export interface FleetTlsFiles {
  readonly cert: string;
  readonly key: string;
  /** Authorities of the peers, both those that dial and those that are dialled. */
  readonly ca: string;
}

interface Loaded {
  readonly stamp: string;
  readonly listen: ListenTls;
  readonly connect: ConnectTls;
}

/** Throws an `Error` for people where a file is missing or wrong; later that goes to `warn`. */
export class FleetTls {
  readonly #files: FleetTlsFiles;
  readonly #warn: (message: string) => void;
  readonly #ca: Buffer;
  #loaded: Loaded;

  constructor(files: FleetTlsFiles, warn: (message: string) => void) {
    this.#files = files;
    this.#warn = warn;
    this.#ca = read('--tls-ca', files.ca);
    attempt('--tls-ca', files.ca, () => new X509Certificate(this.#ca));
    this.#loaded = this.#load(this.#stamp());
  }

  /** What counts now: authorities stay, the certificate is read anew when it has changed. */
  get current(): Loaded {
    const stamp = this.#stamp();
    if (stamp === this.#loaded.stamp) return this.#loaded;
    try {
      this.#loaded = this.#load(stamp);
    } catch (error) {
      this.#loaded = { ...this.#loaded, stamp };
      this.#warn(`the certificate stays as it was: ${(error as Error).message}`);
    }
    return this.#loaded;
  }

  #stamp(): string {
    const { cert, key } = this.#files;
    const stamps = [cert, key].map((file) => {
      const found = statSync(file, { throwIfNoEntry: false, bigint: true });
      return found === undefined ? '-' : `${found.ino}:${found.mtimeNs}:${found.size}`;
    });
    return stamps.join(' ');
  }

  #load(stamp: string): Loaded {
    const { cert: certFile, key: keyFile } = this.#files;
    const cert = read('--tls-cert', certFile);
    const key = read('--tls-key', keyFile);
    const parsed = attempt('--tls-cert', certFile, () => new X509Certificate(cert));
    const secret = attempt('--tls-key', keyFile, () => createPrivateKey(key));
    if (!parsed.checkPrivateKey(secret)) {
      throw new Error(`--tls-key: ${keyFile} is not the key of ${certFile}`);
    }
    const ca = this.#ca;
    const must = { requiresClientCert: true, minVersion: 'TLSv1.3' } as const;
    return { stamp, listen: { cert, key, clientCa: ca, ...must }, connect: { cert, key, ca } };
  }
}

function read(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`${flag}: ${(error as Error).message}`, { cause: error });
  }
}

function attempt<T>(flag: string, path: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new Error(`${flag}: ${path} cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
