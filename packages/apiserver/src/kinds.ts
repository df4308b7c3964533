/** All rules that kinds have beyond the tables, put in force once. */
import { defineNamespaces } from './namespaces.ts';
import { defineReviews } from './reviews.ts';
import { definePods } from './pods.ts';
import { definePlainKinds } from './plain-kinds.ts';

let isDone = false;

/** Registers every kind's rules; later calls do nothing. */
export function defineAll(): void {
  if (isDone) return;
  isDone = true;
  definePlainKinds();
  defineNamespaces();
  definePods();
  defineReviews();
}
