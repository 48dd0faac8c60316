"""A program with inlined functions; the tests name its lines."""
C = r"""
static volatile unsigned long sink;
static inline __attribute__((always_inline)) void innermost(int n)
{
	for (int i = 0; i < n; i++)
		sink += i; /* line 6 */
}
static inline __attribute__((always_inline)) void middle(int n)
{
	innermost(n); /* line 10 */
	sink++;
}
__attribute__((noinline)) static void hidden_worker(int n)
{
	middle(n); /* line 15 */
	sink++;
}
int main(int argc, char **argv)
{
	for (;;)
		hidden_worker(argc * 1000); /* line 21 */
}
"""
