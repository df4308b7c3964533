/** Critical extensions: who does not know them must refuse the certificate (RFC 5280, 4.2). */
import { derAt, derChildren, objectIdAt } from '@megaplane/base/der-reader';

/** Key usage, alternative names, basic constraints, extended key usage. */
const KNOWN: ReadonlySet<string> = new Set(['2.5.29.15', '2.5.29.17', '2.5.29.19', '2.5.29.37']);
const EXTENSIONS = 0xa3;
const BOOLEAN = 0x01;

/** Whether all critical extensions of a certificate in DER are known; false for other bytes. */
export function knowsCritical(raw: Uint8Array): boolean {
  const certificate = derAt(raw, 0, raw.length);
  const [body] = certificate === undefined ? [] : (derChildren(raw, certificate) ?? []);
  const parts = body === undefined ? undefined : derChildren(raw, body);
  if (parts === undefined) return false;
  const wrapped = parts.find(({ tag }) => tag === EXTENSIONS);
  if (wrapped === undefined) return true;
  const [list] = derChildren(raw, wrapped) ?? [];
  const extensions = list === undefined ? undefined : derChildren(raw, list);
  if (extensions === undefined) return false;
  return extensions.every((extension) => {
    const [id, second] = derChildren(raw, extension) ?? [];
    if (id === undefined || second === undefined) return false;
    const isCritical = second.tag === BOOLEAN && raw[second.start] !== 0;
    return !isCritical || KNOWN.has(objectIdAt(raw, id));
  });
}
