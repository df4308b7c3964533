/** From the selectors of a request to a filter over stored bytes. */
import { EVERY_FIELD, parseFieldSelector } from '@megaplane/machinery/fieldselectors';
import { EVERYTHING, parseLabelSelector } from '@megaplane/machinery/selectors';
import { badRequest, failed, success, type Result } from '@megaplane/machinery/status';
import { Filter } from './filter.ts';
import type { ListOptions } from './list-options.ts';
import type { Served } from './served.ts';

/** The filter of a list or watch; a selector that does not parse is a 400 with upstream's text. */
export function filterOf(served: Served, options: ListOptions): Result<Filter> {
  const labels = options.labelSelector;
  const parsedLabels = labels === '' ? { value: EVERYTHING } : parseLabelSelector(labels);
  if ('error' in parsedLabels) return failed(badRequest(parsedLabels.error));
  const { group, kind } = served.resource;
  const fields = options.fieldSelector;
  const parsedFields =
    fields === '' ? { value: EVERY_FIELD } : parseFieldSelector(fields, group, kind);
  if ('error' in parsedFields) return failed(badRequest(parsedFields.error));
  const { namespaced } = served.resource;
  return success(
    new Filter(parsedLabels.value, parsedFields.value, served.prefix.length, namespaced),
  );
}
