// data plane: IPv6 addresses in 16 bytes
/** IPv6 addresses as numbers of 128 bits, and columns of them. */
import { Uint32Column } from '@megaplane/base/column';
import { ipText, parseIp } from '@megaplane/machinery/ip-address';

const WORD_BITS = 32n;
const WORD_MASK = 0xffff_ffffn;
const BYTES = 16;

/** The number behind an IPv6 address; 0 for text that is none, and for `::`. */
export function address6Number(text: string): bigint {
  const found = text.includes(':') ? parseIp(text) : undefined;
  if (found === undefined || found.isIpv4) return 0n;
  return BigInt(`0x${Buffer.from(found.bytes).toString('hex')}`);
}

/** The text of an IPv6 address, as RFC 5952 has it. */
export function address6Text(address: bigint): string {
  const hex = address.toString(16).padStart(BYTES * 2, '0');
  return ipText({ bytes: Buffer.from(hex, 'hex'), isIpv4: false });
}

/** A column of addresses; it takes no room before the first one that is not 0. */
export class Ip6Column {
  readonly #words: readonly Uint32Column[] = [0, 1, 2, 3].map(() => new Uint32Column());
  #isUsed = false;

  get(id: number): bigint {
    if (!this.#isUsed) return 0n;
    let address = 0n;
    for (const word of this.#words) address = (address << WORD_BITS) | BigInt(word.get(id));
    return address;
  }

  set(id: number, address: bigint): void {
    if (address === 0n && !this.#isUsed) return;
    this.#isUsed = true;
    let rest = address;
    for (let at = this.#words.length - 1; at >= 0; at--) {
      this.#words[at]!.set(id, Number(rest & WORD_MASK));
      rest >>= WORD_BITS;
    }
  }
}
