/**
 * Bounds of what expressions make. Costs are counted for what was read and, of some functions, only
 * when their result is there; a text that is put between each two letters of another would by then
 * have the square of its length. So each function that makes more than it reads knows the length
 * before it begins. cel-go makes all of it, as far as the memory of its process goes.
 */
import { CelError } from './values.ts';

/** UTF-16 units of a text that an expression makes: as many as the cost of ten evaluations. */
export const TEXT_LENGTH_MAX: number = 16 * 1024 * 1024;
/** Members of a list that an expression makes; to look at each costs more than one may. */
export const LIST_LENGTH_MAX = 1_000_000;

export const TOO_LONG_TEXT: CelError = new CelError(
  `the text would be longer than ${TEXT_LENGTH_MAX} characters`,
);
export const TOO_LONG_LIST: CelError = new CelError(
  `the list would have more than ${LIST_LENGTH_MAX} members`,
);
