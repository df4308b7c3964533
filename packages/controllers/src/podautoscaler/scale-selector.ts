/** The selector of a scale, as upstream's scale client gives it on. */
import {
  parseLabelSelector,
  selectorText,
  type Parsed,
  type Requirement,
} from '@megaplane/machinery/selectors';

/** Upstream turns the text into a LabelSelector and back: what that cannot say is refused. */
export function scaleSelectorOf(text: string): Parsed<string> {
  if (text === '') return { value: '' };
  const parsed = parseLabelSelector(text);
  if ('error' in parsed) {
    return refused(`couldn't parse the selector string "${text}": ${parsed.error}`);
  }
  const byLabel = new Map<string, Requirement>();
  const others: Requirement[] = [];
  for (const one of parsed.value.requirements) {
    const { operator } = one;
    if (operator === 'gt' || operator === 'lt') {
      return refused(`"${operator}" isn't supported in label selectors`);
    }
    if (operator === '!=') return refused('"!=" is not a valid label selector operator');
    if (operator === '=' || operator === '==') byLabel.set(one.key, { ...one, operator: '=' });
    else others.push(one);
  }
  const requirements = [...byLabel.values(), ...others].toSorted((a, b) =>
    a.key < b.key ? -1 : Number(a.key > b.key),
  );
  return { value: selectorText({ requirements }) };
}

function refused(why: string): { readonly error: string } {
  const prefix = 'received an object from a /scale endpoint which was not convertible to';
  return { error: `${prefix} autoscaling Scale: failed to parse target selector: ${why}` };
}
