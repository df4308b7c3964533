// shell: nonces are random
/**
 * The ciphers of encryption at rest, bit for bit as kube-apiserver has them (its packages
 * `value/encrypt/aes` and `value/encrypt/secretbox`): what one seals the other opens.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { openBox, sealBox, SECRETBOX_KEY_BYTES, SECRETBOX_NONCE_BYTES } from './secretbox.ts';

const BLOCK_BYTES = 16;
const GCM_NONCE_BYTES = 12;
const GCM_TAG_BYTES = 16;

export type CipherName = 'aescbc' | 'aesgcm' | 'secretbox';

/** Sizes of a key in bytes. */
export const KEY_SIZES: Readonly<Record<CipherName, readonly number[]>> = {
  aescbc: [16, 24, 32],
  aesgcm: [16, 24, 32],
  secretbox: [SECRETBOX_KEY_BYTES],
};

export interface Cipher {
  /** `context` is bound to the result where the cipher can do that. */
  seal(value: Buffer, context: Buffer): Buffer;
  /** Null where the value was not sealed with this key. */
  open(sealed: Buffer, context: Buffer): Buffer | null;
}

/** A cipher with a key of one of its sizes. */
export function cipherOf(name: CipherName, key: Buffer): Cipher {
  if (name === 'aescbc') return cbc(key);
  return name === 'aesgcm' ? gcm(key) : secretbox(key);
}

/** Without authenticity: a change goes unseen, but for its padding. Nonce, then blocks. */
function cbc(key: Buffer): Cipher {
  const algorithm = `aes-${key.length * 8}-cbc`;
  return {
    seal: (value) => {
      const nonce = randomBytes(BLOCK_BYTES);
      const cipher = createCipheriv(algorithm, key, nonce);
      return Buffer.concat([nonce, cipher.update(value), cipher.final()]);
    },
    open: (sealed) => {
      if (sealed.length < 2 * BLOCK_BYTES || sealed.length % BLOCK_BYTES !== 0) return null;
      const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, BLOCK_BYTES));
      return opened(() =>
        Buffer.concat([decipher.update(sealed.subarray(BLOCK_BYTES)), decipher.final()]),
      );
    },
  };
}

/** Nonce, sealed bytes, tag; the key in storage is authenticated too. */
function gcm(key: Buffer): Cipher {
  const algorithm = `aes-${key.length * 8}-gcm` as 'aes-256-gcm';
  return {
    seal: (value, context) => {
      const nonce = randomBytes(GCM_NONCE_BYTES);
      const cipher = createCipheriv(algorithm, key, nonce).setAAD(context);
      const sealed = Buffer.concat([nonce, cipher.update(value), cipher.final()]);
      return Buffer.concat([sealed, cipher.getAuthTag()]);
    },
    open: (sealed, context) => {
      const end = sealed.length - GCM_TAG_BYTES;
      if (end < GCM_NONCE_BYTES) return null;
      const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, GCM_NONCE_BYTES));
      decipher.setAAD(context).setAuthTag(sealed.subarray(end));
      return opened(() =>
        Buffer.concat([decipher.update(sealed.subarray(GCM_NONCE_BYTES, end)), decipher.final()]),
      );
    },
  };
}

function secretbox(key: Buffer): Cipher {
  return {
    seal: (value) => {
      const nonce = randomBytes(SECRETBOX_NONCE_BYTES);
      return Buffer.concat([nonce, sealBox(value, nonce, key)]);
    },
    open: (sealed) => {
      if (sealed.length < SECRETBOX_NONCE_BYTES) return null;
      const nonce = sealed.subarray(0, SECRETBOX_NONCE_BYTES);
      return openBox(sealed.subarray(SECRETBOX_NONCE_BYTES), nonce, key);
    },
  };
}

/** OpenSSL throws where padding or tag are wrong. */
function opened(open: () => Buffer): Buffer | null {
  try {
    return open();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null;
    if (error instanceof Error && error.message.includes('unable to authenticate')) return null;
    throw error;
  }
}
