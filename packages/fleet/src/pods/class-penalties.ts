/** The file that gives priority classes their penalties. */
import { isObject } from '@megaplane/machinery/json-value';
import type { JsonValue } from '@megaplane/machinery/json-value';
import { parseQuantity } from '@megaplane/machinery/quantity';
import type { ClassPenalties, ClassPenalty } from './projection.ts';

const FIELDS = ['interruptionPenalty', 'reclamationPenalty'] as const;

/**
 * Reads `{class: {interruptionPenalty, reclamationPenalty}}`, either or both; amounts are
 * quantities in dollars. Throws an `Error` that names what is wrong.
 */
export function classPenalties(value: JsonValue | undefined): ClassPenalties {
  const classes = new Map<string, ClassPenalty>();
  if (value === undefined || value === null) return classes;
  if (!isObject(value)) throw new Error('penalties of classes: an object by names of classes');
  for (const [name, given] of Object.entries(value)) {
    if (given === null) continue;
    if (!isObject(given)) throw new Error(`penalties of class ${name}: an object of amounts`);
    const penalty: { interruptionPenalty?: string; reclamationPenalty?: string } = {};
    for (const [field, amount] of Object.entries(given)) {
      const known = FIELDS.find((other) => other === field);
      if (known === undefined) {
        throw new Error(`penalties of class ${name}: ${field} is none of ${FIELDS.join(', ')}`);
      }
      if (typeof amount !== 'string' && typeof amount !== 'number') {
        throw new Error(`penalties of class ${name}: ${field} is no quantity`);
      }
      const quantity = parseQuantity(String(amount));
      if (typeof quantity === 'string') {
        throw new Error(`penalties of class ${name}: ${field} ${amount} is no quantity`);
      }
      penalty[known] = quantity.toString();
    }
    classes.set(name, penalty);
  }
  return classes;
}
