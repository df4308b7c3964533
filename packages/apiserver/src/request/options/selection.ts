/** From the selectors of a request to a filter over stored bytes. */
import { EVERY_FIELD, parseFieldSelector } from '@megaplane/machinery/fieldselectors';
import { EVERYTHING, parseLabelSelector } from '@megaplane/machinery/selectors';
import { badRequest, failed, success, type Result } from '@megaplane/machinery/status';
import { Filter } from '../filter.ts';
import type { ListOptions } from './list-options.ts';
import type { Served } from '../../storage/served.ts';
import { shardOf } from './shard-selector.ts';

/** The filter of a list or watch; what does not parse fails with upstream's code and text. */
export function filterOf(served: Served, options: ListOptions): Result<Filter> {
  if (!options.labelSelector && !options.fieldSelector && !options.shardSelector) {
    return success(everythingOf(served));
  }
  const labels = options.labelSelector;
  const parsedLabels = labels === '' ? { value: EVERYTHING } : parseLabelSelector(labels);
  if ('error' in parsedLabels) return failed(badRequest(parsedLabels.error));
  const { group, kind } = served.resource;
  const fields = options.fieldSelector;
  const parsedFields =
    fields === ''
      ? { value: EVERY_FIELD }
      : parseFieldSelector(fields, group, kind, served.custom?.facts.selectable);
  if ('error' in parsedFields) return failed(badRequest(parsedFields.error));
  const shard = shardOf(options.shardSelector);
  if (!shard.ok) return shard;
  const { namespaced } = served.resource;
  const { length } = served.prefix;
  return success(
    new Filter(parsedLabels.value, parsedFields.value, length, namespaced, shard.value),
  );
}

const everythings = new WeakMap<Served, Filter>();

/** The filter that lets everything pass, one for all who ask for nothing less. */
function everythingOf(served: Served): Filter {
  let filter = everythings.get(served);
  if (filter === undefined) {
    const { prefix, resource } = served;
    filter = new Filter(EVERYTHING, EVERY_FIELD, prefix.length, resource.namespaced);
    everythings.set(served, filter);
  }
  return filter;
}
