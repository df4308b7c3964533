/** The questions `encode` and `decode`: frames of the wire, in hexadecimal, and their JSON. */
import { frameJson, frameOf } from './frames.ts';

type Question = Readonly<Record<string, unknown>>;

/** `{"message", "json"}` to `{"hex"}`. */
export function explainEncode(question: Question): object {
  const json = question['json'] as Parameters<typeof frameOf>[1];
  return { hex: Buffer.from(frameOf(messageName(question), json)).toString('hex') };
}

/** `{"message", "hex"}` to `{"json"}`. */
export function explainDecode(question: Question): object {
  const { hex } = question;
  if (typeof hex !== 'string' || !/^([0-9a-fA-F]{2})*$/.test(hex)) {
    throw new Error('hex is a text of pairs of hexadecimal digits');
  }
  return { json: frameJson(messageName(question), Buffer.from(hex, 'hex')) };
}

function messageName({ message }: Question): string {
  if (typeof message !== 'string') throw new Error('message is the full name of a message');
  return message;
}
