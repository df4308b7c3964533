/**
 * Shuffle sharding: each flow gets a few of a level's queues, so that one that floods its own
 * shares at most a few of them with any other.
 *
 * The deal is upstream's to the card (apiserver `util/shufflesharding`), so that two servers behind
 * one balancer put a flow into the same queues.
 */
import { createHash } from 'node:crypto';

/** The first 64 bits of SHA-256 over the schema's name, a zero byte and the distinguisher. */
export function hashFlow(schema: string, distinguisher: string): bigint {
  const digest = createHash('sha256').update(`${schema}\0${distinguisher}`).digest();
  return digest.readBigUInt64LE(0);
}

/** `handSize` different numbers below `queues`, decided by the hash. */
export function dealHand(hash: bigint, queues: number, handSize: number): number[] {
  const places: number[] = [];
  let rest = hash;
  for (let index = 0; index < handSize; index++) {
    const left = BigInt(queues - index);
    places.push(Number(rest % left));
    rest /= left;
  }
  // each place counts the cards that were left in the deck when it was drawn
  return places.map((place, index) => {
    let card = place;
    for (let before = index - 1; before >= 0; before--) {
      if (card >= (places[before] ?? 0)) card++;
    }
    return card;
  });
}
