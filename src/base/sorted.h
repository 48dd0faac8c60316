/* Binary search. */
#ifndef DESCRY_BASE_SORTED_H
#define DESCRY_BASE_SORTED_H

/* Returns the index of the first of n elements without a property. The property must hold for all
 * elements before that and for none from there on. `has` is an expression of the element's index i:
 * partition_point(n, i, v[i].end <= addr). */
#define partition_point(n, i, has) \
	({ \
		__auto_type hi_ = (n); \
		__typeof__(hi_) lo_ = 0; \
		while (lo_ < hi_) { \
			const __typeof__(hi_) i = lo_ + (hi_ - lo_) / 2; \
			if (has) \
				lo_ = i + 1; \
			else \
				hi_ = i; \
		} \
		lo_; \
	})

#endif
